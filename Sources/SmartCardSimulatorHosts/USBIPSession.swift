import Dispatch
import Glibc
import SmartCardSimulator
import Synchronization
import Waiting

/// An imported device: takes commands, and sends each its reply when the device has given it.
final class USBIPSession: Sendable {
    private struct State {
        /// The commands not yet answered, by number.
        var submissions: [UInt32: USBIP.Submission] = [:]
        /// The unlink commands whose submissions have been discarded, by the submissions' numbers.
        var unlinks: [UInt32: UInt32] = [:]
        /// The number of the device's messages that the client has not requested yet.
        var messages = 0
        var isOver = false
    }

    private let file: USBDeviceFile
    private let open: USBDeviceFile.Open
    private let state = Mutex(State())
    /// All that is sent is sent here, so that replies follow each other as things happened.
    private let replies = DispatchQueue(label: "usbip-session")
    private let connection: USBIPConnection

    /// The maximum number of commands without a reply; a card reader's driver has two or three.
    static let maximumSubmissions = 256
    /// The maximum number of the device's messages kept; a reader's driver requests each before it sends the next
    /// command.
    static let maximumMessages = 256

    /// - Parameter connection: where the replies go.
    init(_ device: any SoftwareUSBDevice, _ connection: USBIPConnection) {
        self.connection = connection
        let wake = Wake()
        file = USBDeviceFile(device) { wake.set($0) }
        open = file.open()
        wake.action = { [weak self] in
            guard let self else { return }
            replies.async { self.reply() }
        }
    }

    /// Takes an event from the device's observer.
    func deviceDid(_ event: SoftwareUSBEvent) {
        if case .ready = event { state.withLock { $0.messages += 1 } }
        file.deviceDid(event)
    }

    /// Performs a command and sends the replies that are ready.  Blocks while the client does not accept them.
    ///
    /// - Returns: false if the session cannot continue: the client is gone or requires too much.
    func perform(_ command: USBIP.Command, data: [UInt8]) -> Bool {
        switch command.kind {
        case .submit(let submission):
            let isAccepted = state.withLock { state in
                guard !state.isOver, state.submissions.count < Self.maximumSubmissions,
                    state.messages < Self.maximumMessages || submission.isIn
                else { return false }
                return state.submissions.updateValue(submission, forKey: command.number) == nil
            }
            guard isAccepted else { return false }
            let isControl = submission.endpoint == 0
            let buffer = submission.isIn ? [UInt8](repeating: 0, count: submission.length) : data
            let refusal = file.submit(
                .init(
                    address: UInt(command.number), kind: isControl ? .control : .bulk, endpoint: submission.endpoint,
                    buffer: isControl ? submission.setup + buffer : buffer), by: open)
            replies.sync {
                if refusal != 0 { reply(to: command.number, status: -refusal) }
                reply()
            }
        case .unlink(let number):
            replies.sync {
                state.withLock { $0.unlinks[number] = command.number }
                let isDiscarded = file.discard(UInt(number), by: open) == 0
                reply()
                // It had ended before: its reply has gone out, which the client has to see first.
                guard !isDiscarded else { return }
                state.withLock { $0.unlinks[number] = nil }
                transmit(USBIP.unlinkReply(command.number, status: 0))
            }
        }
        return state.withLock { !$0.isOver }
    }

    /// Unplugs the device: pending requests end with ESHUTDOWN.  Returns when the client has been told.
    func unplug() {
        file.unplug()
        replies.sync { reply() }
        end()
    }

    /// Ends the connection.
    func end() {
        state.withLock { $0.isOver = true }
        file.close(open)
        connection.end()
    }

    /// Sends the replies to all that has ended.
    private func reply() {
        while let completion = file.reap(open) {
            let number = UInt32(truncatingIfNeeded: completion.address)
            if completion.status == -ENOENT, let unlink = state.withLock({ $0.unlinks.removeValue(forKey: number) }) {
                state.withLock { $0.submissions[number] = nil }
                transmit(USBIP.unlinkReply(unlink, status: -ECONNRESET))
            } else {
                reply(to: number, status: completion.status, length: completion.length, data: completion.data)
            }
        }
    }

    private func reply(to number: UInt32, status: Int32, length: Int = 0, data: [UInt8] = []) {
        let submission = state.withLock { state in
            let submission = state.submissions.removeValue(forKey: number)
            if let submission, submission.isIn, submission.endpoint != 0, !data.isEmpty { state.messages -= 1 }
            return submission
        }
        guard let submission else { return }
        transmit(submission.reply(number, status: status, length: length, data: data))
    }

    private func transmit(_ bytes: [UInt8]) {
        guard state.withLock({ !$0.isOver }), !connection.send(bytes) else { return }
        state.withLock { $0.isOver = true }
    }
}

/// Acts each time when something becomes reapable after there was nothing.
private final class Wake: Sendable {
    private struct State {
        var isSet = false
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var action: (@Sendable () -> Void)? {
        get { state.withLock { $0.action } }
        set { state.withLock { $0.action = newValue } }
    }

    func set(_ reapable: Bool) {
        let isNew = state.withLock { state in
            defer { state.isSet = reapable }
            return reapable && !state.isSet
        }
        if isNew { action?() }
    }
}

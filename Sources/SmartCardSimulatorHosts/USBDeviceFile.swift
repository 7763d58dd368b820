import Glibc
import SmartCardSimulator
import Waiting

/// The device file /dev/bus/usb/BBB/DDD of a software device, without a transport.
///
/// It handles URBs, interfaces and opens as the kernel's usbfs does (Linux, drivers/usb/core/devio.c).
///
/// Every method returns at once; data that the device delays appear in ``reap(_:)`` later.
final class USBDeviceFile: Sendable {
    /// One open of the file.
    struct Open: Hashable, Sendable {
        fileprivate let number: Int
    }

    /// A transfer as SUBMITURB hands it in; `address` names it afterwards.
    struct Transfer: Sendable {
        enum Kind: Sendable { case control, bulk, interrupt }
        var address: UInt
        var kind: Kind
        var endpoint: UInt8
        /// The buffer: the bytes to send, or the room for the bytes to receive.  In a control transfer it begins with
        /// the setup packet.
        var buffer: [UInt8]

        var isIn: Bool { kind == .control ? (buffer.first ?? 0) & 0x80 != 0 : endpoint & 0x80 != 0 }
    }

    /// A transfer that has ended.
    struct Completion: Hashable, Sendable {
        var address: UInt
        /// 0 or a negative errno.
        var status: Int32
        /// The number of bytes sent or received, without a setup packet.
        var length: Int
        /// The received data.
        var data: [UInt8]
    }

    fileprivate struct State {
        var plugged = true
        var opens: [Open: [Completion]] = [:]
        var lastOpen = 0
        var owners: [UInt32: Open] = [:]
        /// IN transfers that wait for data, oldest first.
        var waiting: [(open: Open, transfer: Transfer)] = []
        /// Data that waits for an IN transfer or for its time, by endpoint, oldest first.
        var data: [UInt8: [(bytes: [UInt8], due: Time.Instant)]] = [:]
        var isReapable: Bool { !plugged || opens.values.contains { !$0.isEmpty } }
    }

    private let device: any SoftwareUSBDevice
    private let state = Lock(State())
    /// Any thread may come.
    private let time = Time.current
    /// Called with true when a transfer becomes ready to be reaped, and with false when none is left.
    private let reapable: @Sendable (Bool) -> Void

    /// - Parameter reapable: called under this object's lock with true if any open file has a transfer to reap; it must
    ///   not call back.
    init(_ device: any SoftwareUSBDevice, reapable: @escaping @Sendable (Bool) -> Void) {
        self.device = device
        self.reapable = reapable
    }

    /// Takes an event from the device's observer.
    func deviceDid(_ event: SoftwareUSBEvent) {
        switch event {
        case .ready(let endpoint, let bytes, let delay):
            change { $0.data[endpoint, default: []].append((bytes, time.now + delay)) }
        case .unplugged:
            unplug()
        }
    }

    /// Marks the device as gone: pending requests end with ESHUTDOWN, later ones fail with ENODEV.
    func unplug() {
        change { state in
            state.plugged = false
            state.data = [:]
            for (open, transfer) in state.waiting {
                state.complete(transfer, of: open, status: -ESHUTDOWN)
            }
            state.waiting = []
        }
    }

    // MARK: Opens and interfaces

    func open() -> Open {
        state.withLock { state in
            state.lastOpen += 1
            let open = Open(number: state.lastOpen)
            state.opens[open] = []
            return open
        }
    }

    func close(_ open: Open) {
        change { state in
            state.opens[open] = nil
            state.waiting.removeAll { $0.open == open }
            state.owners = state.owners.filter { $0.value != open }
        }
    }

    /// Claims an interface.
    ///
    /// - Returns: 0, EBUSY if another open file holds the interface, ENOENT if there is none, ENODEV.
    func claim(interface: UInt32, by open: Open) -> Int32 {
        state.withLock { state in
            guard state.plugged else { return ENODEV }
            guard interface < interfaceCount else { return ENOENT }
            if let owner = state.owners[interface], owner != open { return EBUSY }
            state.owners[interface] = open
            return 0
        }
    }

    func release(interface: UInt32, by open: Open) -> Int32 {
        state.withLock { state in
            guard state.plugged else { return ENODEV }
            guard state.owners[interface] == open else { return EINVAL }
            state.owners[interface] = nil
            return 0
        }
    }

    /// True if any open file holds an interface.
    var isClaimed: Bool { state.withLock { !$0.owners.isEmpty } }

    // MARK: Transfers

    /// A control transfer, done at once.  It never goes through ``reap(_:)``.
    ///
    /// - Returns: 0, or ENODEV.
    func reset() -> Int32 {
        guard isPlugged else { return ENODEV }
        device.reset()
        return 0
    }

    /// - Returns: nil for a STALL.
    func control(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        device.controlTransfer(setup: setup, data: data)
    }

    /// - Returns: 0, or why the transfer was not taken: ENODEV, EBUSY, EINVAL.
    func submit(_ transfer: Transfer, by open: Open) -> Int32 {
        let refusal = state.withLock { state -> Int32 in
            guard state.plugged else { return ENODEV }
            guard state.opens[open] != nil else { return EINVAL }
            guard transfer.kind != .control else { return transfer.buffer.count < 8 ? EINVAL : 0 }
            // A program that did not claim the interface claims it now, as in usbfs.
            let interface = interface(of: transfer.endpoint)
            if let owner = state.owners[interface], owner != open { return EBUSY }
            state.owners[interface] = open
            return 0
        }
        guard refusal == 0 else { return refusal }
        // The device is called without the lock: it answers through deviceDid, often before it returns.
        switch (transfer.kind, transfer.isIn) {
        case (.control, let isIn):
            let setup = Array(transfer.buffer.prefix(8))
            let out = isIn ? [] : Array(transfer.buffer.dropFirst(8))
            let answer = control(setup: setup, data: out)
            change { state in
                state.complete(
                    transfer, of: open, status: answer == nil ? -EPIPE : 0,
                    length: answer == nil ? 0 : isIn ? answer?.count ?? 0 : out.count, data: isIn ? answer ?? [] : [])
            }
        case (_, false):
            device.transferOut(endpoint: transfer.endpoint, transfer.buffer)
            change { $0.complete(transfer, of: open, status: 0, length: transfer.buffer.count) }
        case (_, true):
            device.willTransferIn(endpoint: transfer.endpoint)
            change { state in
                if state.plugged {
                    state.waiting.append((open, transfer))
                } else {
                    state.complete(transfer, of: open, status: -ESHUTDOWN)
                }
            }
        }
        return 0
    }

    /// Ends a waiting transfer, which is then reaped with ENOENT.
    ///
    /// - Returns: 0, or EINVAL if no such transfer waits.
    func discard(_ address: UInt, by open: Open) -> Int32 {
        change { state in
            guard
                let index = state.waiting.firstIndex(where: { $0.open == open && $0.transfer.address == address })
            else { return EINVAL }
            state.complete(state.waiting.remove(at: index).transfer, of: open, status: -ENOENT)
            return 0
        }
    }

    /// The oldest transfer of this open that has ended; nil if none has.
    func reap(_ open: Open) -> Completion? {
        change { state in
            guard state.opens[open]?.isEmpty == false else { return nil }
            return state.opens[open]?.removeFirst()
        }
    }

    /// True while the device is on the bus.
    var isPlugged: Bool { state.withLock { $0.plugged } }

    /// Returns the interface whose descriptor precedes the endpoint's (USB 2.0, 9.6.3); 0 for an unknown endpoint.
    private func interface(of endpoint: UInt8) -> UInt32 {
        var rest = device.configurationDescriptor[...]
        var interface: UInt32 = 0
        while let length = rest.first, length >= 3, rest.count >= length {
            let descriptor = Array(rest.prefix(Int(length)))
            if descriptor[1] == 0x04 { interface = UInt32(descriptor[2]) }
            if descriptor[1] == 0x05, descriptor[2] == endpoint { return interface }
            rest = rest.dropFirst(Int(length))
        }
        return 0
    }

    private var interfaceCount: UInt32 { UInt32(device.configurationDescriptor.dropFirst(4).first ?? 0) }

    /// Changes the state, matches data with transfers, and reports if a transfer is ready to reap.
    private func change<Result: Sendable>(_ body: (inout sending State) -> Result) -> Result {
        state.withLock { state in
            let result = body(&state)
            if let next = state.match(now: time.now) {
                _ = time.deadline(after: next) { [weak self] in self?.change { _ in } }
            }
            reapable(state.isReapable)
            return result
        }
    }
}

extension USBDeviceFile.State {
    mutating func complete(
        _ transfer: USBDeviceFile.Transfer, of open: USBDeviceFile.Open, status: Int32, length: Int = 0,
        data: [UInt8] = []
    ) {
        opens[open]?.append(.init(address: transfer.address, status: status, length: length, data: data))
    }

    /// Gives each waiting transfer the data that have arrived for its endpoint.
    ///
    /// - Returns: the time until more is due, if a transfer waits for it; an hour at most.
    mutating func match(now: Time.Instant) -> Duration? {
        var next: Duration?
        var stillWaiting: [(open: USBDeviceFile.Open, transfer: USBDeviceFile.Transfer)] = []
        for (open, transfer) in waiting {
            guard let first = data[transfer.endpoint]?.first else {
                stillWaiting.append((open, transfer))
                continue
            }
            guard first.due <= now else {
                next = min(next ?? .seconds(3600), now.duration(to: first.due))
                stillWaiting.append((open, transfer))
                continue
            }
            data[transfer.endpoint]?.removeFirst()
            // More than the buffer holds is lost, and the transfer says so (EOVERFLOW, "babble").
            let fits = first.bytes.count <= transfer.buffer.count
            complete(
                transfer, of: open, status: fits ? 0 : -EOVERFLOW,
                length: min(first.bytes.count, transfer.buffer.count),
                data: Array(first.bytes.prefix(transfer.buffer.count)))
        }
        waiting = stillWaiting
        return next
    }
}

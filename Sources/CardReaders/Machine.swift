import Foundation
import Logging
public import SmartCard
import SmartCardPCSC
package import SmartCardUSB
import USBDevices

/// The readers of this machine, over all backends, each once.
///
///     for reader in try await Machine().readers() {
///         print(reader.identity.name, reader.identity.backend, reader.reason)
///     }
///
/// A reader is driven through pcscd where pcscd answers and has it, else straight over USB.  A PN532 board on a serial port is
/// looked for only at the devices that were named: asking a port means to write to whatever is there.
public struct Machine: Sendable {
    /// Where readers are looked for.
    public struct Backends: OptionSet, Hashable, Sendable {
        public var rawValue: UInt8

        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let pcsc = Backends(rawValue: 0x01)
        public static let usb = Backends(rawValue: 0x02)
        public static let all: Backends = [.pcsc, .usb]
    }

    /// What a look has found.
    public struct Listing: Sendable {
        /// Those of pcscd first, in its order.
        public let readers: [MachineReader]
        /// Backends that could not be looked at, with what is wrong there.
        public let failures: [ReaderIdentity.Backend: CardError]
    }

    private let backends: Backends
    private let devices: [String]
    private let usb: USBReaders
    private let boards: SerialBoards

    /// - Parameters:
    ///   - backends: empty where only `devices` are to be looked at.
    ///   - devices: of serial ports with a PN532 board: `/dev/ttyUSB0`.
    public init(_ backends: Backends = .all, devices: [String] = []) {
        self.init(backends, devices: devices, usb: USBReaders())
    }

    package init(_ backends: Backends = .all, devices: [String] = [], usb: USBReaders) {
        (self.backends, self.devices, self.usb, boards) = (backends, devices, usb, .ofThisProcess)
    }

    /// The readers that are attached.  Waits five seconds at most for a pcscd that is stopped, busy or starting, or to which a
    /// reader that has just been plugged in may still be new.
    ///
    /// - Throws: `CardError` where there are none: what is wrong with pcscd or a device that was named, else of kind `noReader`.
    public func readers() async throws -> [MachineReader] {
        let listing = await look()
        guard listing.readers.isEmpty else { return listing.readers }
        throw listing.failure(unlessFoundBy: backends) ?? CardError(.noReader)
    }

    /// The reader for a program that wants one: of a reader with several slots, one that is for contactless cards.
    ///
    /// - Throws: as ``readers()`` does.
    public func reader() async throws -> MachineReader {
        let readers = try await readers()
        guard let reader = readers.preferred else { throw CardError(.noReader) }
        return reader
    }

    /// The readers, and what could not be looked at.
    public func look() async -> Listing {
        await Survey(self).look(thoroughly: false).listing
    }

    /// What is attached, again with each change, without polling.  A backend that fails is tried again.
    ///
    /// A reader that is plugged in while pcscd answers is told as soon as pcscd has it; one that pcscd does not take within five
    /// seconds is driven over USB.
    ///
    /// Each call makes a stream of its own, which ends when it is let go.
    public func listings() -> AsyncStream<Listing> { listings(thoroughly: true) }

    /// - Parameter thoroughly: whether pcscd's drivers are asked about their readers even if no other backend has any.
    package func listings(thoroughly: Bool) -> AsyncStream<Listing> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task { [self] in
                let survey = Survey(self)
                let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
                change.yield()
                let watches = watches(change)
                var nextLook: Task<Void, any Error>?
                for await _ in changes {
                    nextLook?.cancel()
                    let found = await survey.look(thoroughly: thoroughly)
                    continuation.yield(found.listing)
                    nextLook = found.lookAgain.map { time in
                        Task {
                            try await Task.sleep(until: time, clock: .continuous)
                            change.yield()
                        }
                    }
                }
                for watch in watches { watch.cancel() }
                nextLook?.cancel()
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Whether a backend is there at all, readers or not.
    public var isPresent: Bool {
        // Whoever has the USB alone may have one of his own.
        backends == .usb || !devices.isEmpty || PCSCD.isPresent
            || FileManager.default.fileExists(atPath: "/dev/bus/usb")
    }

    /// Gives back every reader that this process drives alone, whoever holds it, when links that were let go have put theirs
    /// back.
    public func close() async {
        await RestoringLink.waitForEndings()
        await usb.close()
        await boards.close()
    }

    private func watches(_ change: AsyncStream<Void>.Continuation) -> [Task<Void, any Error>] {
        var watches: [Task<Void, any Error>] = []
        if backends.contains(.pcsc) {
            watches.append(
                Self.watch(change) {
                    for try await event in PCSCService().events(waitForService: true) {
                        switch event {
                        case .readerAttached, .readerRemoved, .serviceUnavailable: change.yield()
                        case .cardInserted, .cardMute, .cardRemoved, .usageChanged: break
                        }
                    }
                })
        }
        if backends.contains(.usb) {
            watches.append(Self.watch(change) { for try await _ in usb.events() { change.yield() } })
        }
        return watches
    }

    /// Runs `body` until the task is cancelled: what ends or fails is begun again, after a look at what was missed.
    private static func watch(
        _ change: AsyncStream<Void>.Continuation, _ body: @escaping @Sendable () async throws -> Void
    ) -> Task<Void, any Error> {
        Task {
            for attempt in 0... {
                do { try await body() } catch { logger.notice("readers cannot be watched: \(type(of: error))") }
                try await Task.sleep(for: .seconds(1 << min(attempt, 6)))
                change.yield()
            }
        }
    }

    private static let logger = Logger(label: "CardReaders")

    // MARK: Looking

    /// Looks at what is attached, and keeps what has to be remembered from one look to the next.
    private actor Survey {
        private let machine: Machine
        private var roster = Roster()
        /// What the drivers have told, of the readers that are there.
        private var known: [String: Roster.PCSCFacts] = [:]

        init(_ machine: Machine) { self.machine = machine }

        /// - Parameter thoroughly: whether pcscd's drivers are asked about their readers even if no other backend has any.
        /// - Returns: the readers, and when to look again though nothing has changed, if ever.
        func look(thoroughly: Bool) async -> (listing: Listing, lookAgain: ContinuousClock.Instant?) {
            let backends = machine.backends
            async let serial = machine.boards.readers(at: machine.devices)
            async let ofUSB = Self.result { [machine] in
                backends.contains(.usb)
                    ? try await withTimeLimit(PCSCD.limit) { try await machine.usb.readers() } : []
            }
            async let ofPCSC = Self.result { backends.contains(.pcsc) ? try await PCSCD().readers() : [] }
            var failures: [ReaderIdentity.Backend: CardError] = [:]
            let devices = await ofUSB.value(&failures[.usb]) ?? []
            var readers = await ofPCSC.value(&failures[.pcsc]) ?? []
            let answers = backends.contains(.pcsc) && failures[.pcsc] == nil
            var entries = await match(readers, devices, answers, thoroughly: thoroughly)
            // One that has only begun may have readers on the USB in hand, which must not be taken from it; nor may one that has
            // only been plugged in.
            let deadline = ContinuousClock.now + PCSCD.limit
            while answers, entries.contains(where: { $0.isOnUSB && ($0.isNew || PCSCD().isYoung) }),
                ContinuousClock.now < deadline, (try? await Task.sleep(for: .milliseconds(100))) != nil
            {
                readers = (try? await PCSCD().readers()) ?? readers
                entries = await match(readers, devices, answers, thoroughly: thoroughly)
            }
            let boards = await serial
            failures[.serial] = boards.failure
            let found = entries.map { entry in
                let driver: any CardReader =
                    switch entry.source {
                    case .pcsc(let index): readers[index]
                    case .usb(let index): devices[index]
                    }
                return MachineReader(
                    entry, driver, reason(for: entry, failures), known: known[driver.identity.name])
            }
            // Who has not answered in time may have readers all the same.
            let isLate = failures.values.contains { $0.kind == .readerTimeout }
            if failures[.pcsc]?.kind == .readerTimeout { failures[.pcsc] = PCSCD.hangs }
            return (
                Listing(readers: found + boards.readers, failures: failures),
                isLate ? .now + .seconds(1) : roster.changesAt
            )
        }

        private func reason(
            for entry: Roster.Entry, _ failures: [ReaderIdentity.Backend: CardError]
        ) -> MachineReader.Reason {
            guard machine.backends == .all else { return .chosen }
            guard entry.isOnUSB else { return entry.device == nil ? .notOnUSB : .pcscdHasIt }
            return failures[.pcsc].map { .pcscdDoesNotAnswer($0.kind) } ?? .pcscdHasItNot
        }

        private func match(
            _ readers: [PCSCReader], _ devices: [USBReader], _ pcscdAnswers: Bool, thoroughly: Bool
        ) async -> [Roster.Entry] {
            if thoroughly || !devices.isEmpty && !readers.isEmpty { await ask(readers) }
            return roster.entries(
                pcsc: readers.map { known[$0.name] ?? Roster.PCSCFacts(name: $0.name, isComplete: false) },
                usb: devices.map { .init(device: $0.device, interface: $0.id.interface, slot: $0.id.slot) },
                pcscdAnswers: pcscdAnswers)
        }

        /// All at once, and no longer than one takes: one bad reader keeps nobody waiting for the others.
        private func ask(_ readers: [PCSCReader]) async {
            let known = known
            self.known = await withTaskGroup(of: Roster.PCSCFacts?.self) { group in
                for reader in readers where known[reader.name] == nil { group.addTask { await Self.facts(of: reader) } }
                let names = Set(readers.map(\.name))
                return await group.reduce(into: known.filter { names.contains($0.key) }) { all, facts in
                    if let facts { all[facts.name] = facts }
                }
            }
        }

        /// - Returns: nil for a reader that cannot be asked.
        private static func facts(of reader: PCSCReader) async -> Roster.PCSCFacts? {
            try? await withTimeLimit(.seconds(5)) {
                let direct = try await reader.connect(sharing: .direct)
                let facts = Roster.PCSCFacts(
                    name: reader.name, vendor: try? await direct.attribute(.vendorName),
                    serialNumber: try? await direct.attribute(.serialNumber),
                    version: try? await direct.attribute(.readerVersion),
                    channel: try? await direct.attribute(.channelID))
                await direct.disconnect(.leave)
                return facts
            }
        }

        private static func result<Value: Sendable>(
            _ body: @escaping @Sendable () async throws -> Value
        ) async -> Result<Value, any Error> {
            do { return .success(try await body()) } catch { return .failure(error) }
        }
    }
}

extension Machine.Listing {
    /// Nil where a backend could be looked at and there was nothing wrong with the others.
    fileprivate func failure(unlessFoundBy backends: Machine.Backends) -> CardError? {
        // USB that is not there hides no reader from pcscd, and is what was asked for where it is alone.
        failures[.serial] ?? failures[.pcsc] ?? (backends.contains(.pcsc) ? nil : failures[.usb])
    }
}

extension Roster.Entry {
    fileprivate var isOnUSB: Bool { if case .usb = source { true } else { false } }
    /// The kernel makes a device's node when it is plugged in.
    fileprivate var isNew: Bool { device.map { PCSCD.isYoung($0.node) } ?? false }
}

extension MachineReader {
    fileprivate init(
        _ entry: Roster.Entry, _ driver: any CardReader, _ reason: Reason, known: Roster.PCSCFacts?
    ) {
        var identity = driver.identity
        identity.vendor = identity.vendor ?? known?.vendor
        identity.serialNumber = identity.serialNumber ?? known?.serialNumber
        self.init(
            id: entry.id, name: entry.name, usbID: entry.device?.modelIdentifier, version: entry.version,
            model: Model.of(name: identity.name, id: entry.device?.modelID), reason: reason, identity: identity,
            driver: driver)
    }
}

extension Result {
    /// The value; where there is none, `failure` is set.
    fileprivate func value(_ failure: inout CardError?) -> Success? {
        switch self {
        case .success(let value): return value
        case .failure(let error):
            failure = error as? CardError ?? CardError(.other, "\(type(of: error))")
            return nil
        }
    }
}

extension Collection where Element: CardReader {
    /// The reader for a program that wants one: of a reader with several slots, one that is for contactless cards.
    public var preferred: Element? {
        first { reader in
            ["PICC", "CONTACTLESS", " CL"].contains { reader.identity.name.uppercased().contains($0) }
        } ?? first
    }
}

import Foundation
import Logging
public import SmartCard
import SmartCardPCSC
package import SmartCardUSB
import USBDevices
import Waiting

/// The readers of this machine over all backends, each listed once.
///
///     for reader in try await Machine().readers() {
///         print(reader.identity.name, reader.identity.backend, reader.reason)
///     }
///
/// pcscd drives a reader if it answers and lists the reader; otherwise the reader is driven directly over USB.  PN532
/// boards on a serial port are looked for only at the named devices: a query writes to whatever is connected there.
public struct Machine: Sendable {
    /// The backends in which to look for readers.
    public struct Backends: OptionSet, Hashable, Sendable {
        public var rawValue: UInt8

        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let pcsc = Backends(rawValue: 0x01)
        public static let usb = Backends(rawValue: 0x02)
        public static let all: Backends = [.pcsc, .usb]
    }

    /// The result of a look at the backends.
    public struct Listing: Sendable {
        /// The readers, those of pcscd first, in its order.
        public let readers: [MachineReader]
        /// The backends that could not be examined, with their errors.
        public let failures: [ReaderIdentity.Backend: CardError]
    }

    private let backends: Backends
    private let devices: [String]
    private let usb: USBReaders
    private let boards: SerialBoards

    /// - Parameters:
    ///   - backends: the backends to look at; empty to look only at `devices`.
    ///   - devices: serial ports with a PN532 board: `/dev/ttyUSB0`.
    public init(_ backends: Backends = .all, devices: [String] = []) {
        self.init(backends, devices: devices, usb: USBReaders())
    }

    package init(_ backends: Backends = .all, devices: [String] = [], usb: USBReaders) {
        (self.backends, self.devices, self.usb, boards) = (backends, devices, usb, .ofThisProcess)
    }

    /// Returns the attached readers.  Waits at most five seconds for a pcscd that is stopped, busy or starting, or that
    /// may not have seen a newly attached reader yet.
    ///
    /// - Throws: `CardError` if there is no reader: the error of pcscd or of a named device, else one of kind
    ///   `noReader`.
    public func readers() async throws -> [MachineReader] {
        let listing = await look()
        guard listing.readers.isEmpty else { return listing.readers }
        throw listing.failure(unlessFoundBy: backends) ?? CardError(.noReader)
    }

    /// Returns the reader for a program that needs one: of several slots, a contactless one.
    ///
    /// - Throws: as ``readers()`` does.
    public func reader() async throws -> MachineReader {
        let readers = try await readers()
        guard let reader = readers.preferred else { throw CardError(.noReader) }
        return reader
    }

    /// Returns the readers and the backends that could not be examined.
    public func look() async -> Listing {
        await Survey(self).look(thoroughly: false).listing
    }

    /// Returns the attached readers now and after each change, without polling.  A backend that fails is tried again.
    ///
    /// A reader that is plugged in while pcscd answers is listed as soon as pcscd has it.  If pcscd does not take it
    /// within five seconds, it is driven over USB.
    ///
    /// Each call makes an independent stream, which ends when it is released.
    public func listings() -> AsyncStream<Listing> { listings(thoroughly: true) }

    /// - Parameter thoroughly: if true, pcscd's drivers are asked about their readers even if no other backend has any.
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
                            try await Time.sleep(until: time)
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

    /// True if a backend exists, with or without readers.
    public var isPresent: Bool {
        // A process that uses only USB may have a bus in software.
        backends == .usb || !devices.isEmpty || PCSCD.isPresent
            || FileManager.default.fileExists(atPath: "/dev/bus/usb")
    }

    /// Releases every reader that only this process drives, whoever holds it, after released links have restored
    /// theirs.
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

    /// Runs `body` until the task is cancelled.  If `body` returns or fails, a look catches up and `body` starts again.
    private static func watch(
        _ change: AsyncStream<Void>.Continuation, _ body: @escaping @Sendable () async throws -> Void
    ) -> Task<Void, any Error> {
        Task {
            for attempt in 0... {
                do { try await body() } catch { logger.notice("readers cannot be watched: \(type(of: error))") }
                try await Time.sleep(for: .seconds(1 << min(attempt, 6)))
                change.yield()
            }
        }
    }

    private static let logger = Logger(label: "CardReaders")

    // MARK: Looking

    /// Looks at the backends and keeps the state between two looks.
    private actor Survey {
        private let machine: Machine
        private var roster = Roster()
        /// The drivers' answers for the readers that are present.
        private var known: [String: Roster.PCSCFacts] = [:]

        init(_ machine: Machine) { self.machine = machine }

        /// - Parameter thoroughly: if true, pcscd's drivers are asked about their readers even if no other backend has
        ///   any.
        /// - Returns: the readers, and the time of the next look if nothing changes; nil: none is needed.
        func look(thoroughly: Bool) async -> (listing: Listing, lookAgain: Time.Instant?) {
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
            // A pcscd that has just started may be opening readers on USB; claiming one would take it away.  The same
            // holds for a reader that was just plugged in.
            let deadline = Time.now + PCSCD.limit
            while answers, entries.contains(where: { $0.isOnUSB && ($0.isNew || PCSCD().isYoung) }),
                Time.now < deadline, (try? await Time.sleep(for: .milliseconds(100))) != nil
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
            // A pcscd that does not answer in time may still have readers.
            let isLate = failures.values.contains { $0.kind == .readerTimeout }
            if failures[.pcsc]?.kind == .readerTimeout { failures[.pcsc] = PCSCD.hangs }
            return (
                Listing(readers: found + boards.readers, failures: failures),
                isLate ? Time.now + .seconds(1) : roster.changesAt
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

        /// Asks all readers at once, for no longer than one takes: a bad reader does not delay the others.
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
    /// The error to report; nil if a backend could be examined and the others have no error.
    fileprivate func failure(unlessFoundBy backends: Machine.Backends) -> CardError? {
        // Missing USB hides no reader from pcscd.  It is the answer only if USB alone was asked for.
        failures[.serial] ?? failures[.pcsc] ?? (backends.contains(.pcsc) ? nil : failures[.usb])
    }
}

extension Roster.Entry {
    fileprivate var isOnUSB: Bool { if case .usb = source { true } else { false } }
    /// True shortly after the reader was plugged in: the kernel makes the device node then.
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
    /// The value; if there is none, `failure` is set.
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
    /// The reader for a program that needs one: of several slots, a contactless one.
    public var preferred: Element? {
        first { reader in
            ["PICC", "CONTACTLESS", " CL"].contains { reader.identity.name.uppercased().contains($0) }
        } ?? first
    }
}

import Logging
import SmartCard
package import USBDevices
import Waiting

/// The readers on the machine's USB, for a process that drives them directly.
///
///     for reader in try await USBReaders().readers() {
///         let card = try await reader.connect()
///         …
///     }
///
/// Looking opens no device and disturbs no program; a reader is claimed on use.  If pcscd or the kernel's NFC driver is
/// running, see ``USBReader``.
public struct USBReaders: Sendable {
    private let claims: InterfaceClaims

    public init() { claims = .ofThisMachine }

    package init(on bus: any USBBus) { claims = InterfaceClaims(bus, timeLimits: CCIDTimeLimits()) }

    init(on bus: any USBBus, timeLimits: CCIDTimeLimits) { claims = InterfaceClaims(bus, timeLimits: timeLimits) }

    /// Returns the attached readers by bus and port, one for each slot.
    ///
    /// - Throws: `CardError` if the machine has no usable USB.
    public func readers() async throws -> [USBReader] {
        try await claims.readers().map { USBReader($0, claims: claims) }
    }

    /// Returns the reader `id`.
    ///
    /// - Throws: `CardError` of kind `readerGone` if it is not plugged in.
    public func reader(_ id: USBReaderID) async throws -> USBReader {
        guard let reader = try await readers().first(where: { $0.id == id }) else {
            throw CardError(.readerGone, "\(id)")
        }
        return reader
    }

    /// Releases every reader that this process holds, as ``USBReader/close()`` does.
    package func close() async { await claims.close() }

    /// Readers that come and go: first the present ones, then each change as it happens, without polling.
    ///
    /// Each call makes an independent stream, which ends when it is released.
    public func events() -> some AsyncSequence<USBReaderEvent, any Error> & Sendable {
        AsyncThrowingStream<USBReaderEvent, any Error>(bufferingPolicy: .bufferingNewest(4096)) { continuation in
            let task = Task { [claims] in
                do {
                    let changes = try claims.changes()
                    var known: [FoundReader: USBReader] = [:]
                    func look() async throws {
                        let found = try await claims.readers()
                        for (gone, reader) in known where !found.contains(gone) {
                            known[gone] = nil
                            continuation.yield(.detached(reader))
                        }
                        for new in found where known[new] == nil {
                            let reader = USBReader(new, claims: claims)
                            known[new] = reader
                            continuation.yield(.attached(reader))
                        }
                    }
                    try await look()
                    for await _ in changes { try await look() }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}

/// The arrival or departure of a reader.
public enum USBReaderEvent: Sendable {
    case attached(USBReader)
    /// A reader left that ``attached(_:)`` announced.
    case detached(USBReader)
}

/// A slot of a present device.
struct FoundReader: Hashable, Sendable {
    let device: USBDevice
    let function: CCIDFunction
    let slot: Int
    let id: USBReaderID

    var identity: ReaderIdentity {
        // As in pcscd: a device with several interfaces has one name for all of them.
        let interface = function.name.map { $0 == device.product ? "" : device.product == nil ? $0 : "[\($0)]" }
        let names = [device.manufacturer, device.product, interface].compactMap(\.self).filter { !$0.isEmpty }
        return ReaderIdentity(
            name: (names + ["\(id)"]).joined(separator: " "), backend: .usb, vendor: device.manufacturer,
            serialNumber: device.serialNumber)
    }

    /// Returns the readers among `devices`.
    static func all(in devices: [USBDevice]) -> [FoundReader] {
        var serialNumbers: [String: Int] = [:]
        func key(_ device: USBDevice) -> String? {
            device.serialNumber.map { "\(device.vendorID):\(device.productID):\($0)" }
        }
        for device in devices { if let key = key(device) { serialNumbers[key, default: 0] += 1 } }
        return devices.sorted { ($0.bus, $0.ports.hex) < ($1.bus, $1.ports.hex) }.flatMap { device in
            // A serial number that several devices share identifies none of them.
            let place: USBReaderID.Place =
                if let serialNumber = device.serialNumber, let key = key(device), serialNumbers[key] == 1,
                    Self.identifies(serialNumber)
                {
                    .serialNumber(serialNumber)
                } else {
                    .port(bus: device.bus, ports: device.ports)
                }
            return device.interfaces.compactMap(CCIDFunction.init).flatMap { function in
                (0..<function.descriptor.slotCount).map { slot in
                    FoundReader(
                        device: device, function: function, slot: slot,
                        id: USBReaderID(
                            vendorID: device.vendorID, productID: device.productID, place: place,
                            interface: Int(function.interface), slot: slot))
                }
            }
        }
    }

    /// Returns true for a printable serial number that is not a filler.
    private static func identifies(_ serialNumber: String) -> Bool {
        serialNumber.utf8.allSatisfy {
            (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: ":")
        }
            && Set(serialNumber.utf8).count > 1
    }
}

/// The interfaces that this process has claimed, shared by all users of an interface.
final class InterfaceClaims: Sendable {
    static let ofThisMachine = InterfaceClaims(LibUSBBus(), timeLimits: CCIDTimeLimits())

    private static let logger = Logger(label: "SmartCardUSB")

    let bus: any USBBus
    private let timeLimits: CCIDTimeLimits
    private let turn = Turn()
    private let open = Lock<[Key: Entry]>([:])
    /// The attached readers that were reset in mid-session.
    private let wereReset = Lock<Set<Key>>([])

    private struct Key: Hashable {
        let bus: UInt8
        let address: UInt8
        let interface: UInt8

        init(_ found: FoundReader) {
            (bus, address, interface) = (found.device.bus, found.device.address, found.function.interface)
        }
    }

    private struct Entry: Sendable {
        weak var interface: CCIDInterface?
        /// The interface's link, which lasts until the interface is released completely.
        let link: any USBLink
        /// The turn that the interfaces of a device share.
        let deviceTurn: Turn
    }

    init(_ bus: any USBBus, timeLimits: CCIDTimeLimits) {
        self.bus = bus
        self.timeLimits = timeLimits
    }

    func readers() async throws(CardError) -> [FoundReader] {
        do {
            let found = FoundReader.all(in: try await bus.devices())
            wereReset.withLock { $0.formIntersection(found.map(Key.init)) }
            return found
        } catch {
            throw CardError(error)
        }
    }

    func changes() throws(CardError) -> AsyncStream<Void> {
        do { return try bus.changes() } catch { throw CardError(error) }
    }

    /// Returns the interface of the slot `id`, opening it if necessary.
    func interface(of id: USBReaderID) async throws -> CCIDInterface {
        // Interfaces are opened one at a time, and an opening always runs to its end.
        let delivery = Delivery<CCIDInterface>()
        return try await delivery.receive {
            Task {
                do {
                    try await turn.take()
                    defer { turn.pass() }
                    let (interface, isNew) = try await openInterface(of: id)
                    // An interface that no task waits for any more is closed before the next turn.
                    if !delivery.deliver(.success(interface)), isNew { await interface.close() }
                } catch {
                    delivery.deliver(.failure(error))
                }
            }
        }
    }

    private func openInterface(of id: USBReaderID) async throws -> (interface: CCIDInterface, isNew: Bool) {
        var found = try await find(id)
        var key = Key(found)
        if let interface = open.withLock({ $0[key]?.interface }) {
            if interface.isOpen { return (interface, false) }
            // It may still be giving the reader back.
            await interface.close()
        }
        let deviceTurn =
            open.withLock { open in
                open = open.filter { $0.value.interface != nil }
                return open.first { $0.key.bus == key.bus && $0.key.address == key.address }?.value.deviceTurn
            } ?? Turn()
        func attempt(_ found: FoundReader) async throws -> CCIDInterface {
            try await CCIDInterface.open(
                found.device, found.function, on: bus, timeLimits: timeLimits, deviceTurn: deviceTurn)
        }
        let interface: CCIDInterface
        do {
            interface = try await attempt(found)
        } catch let error as CardError where error.kind == .readerTimeout && !isInUse(key) {
            try await reset(found)
            found = try await find(id)
            key = Key(found)
            do {
                interface = try await attempt(found)
            } catch let error as CardError where error.kind == .readerTimeout {
                throw CardError(
                    .readerTimeout, "nor after a reset over USB", hint: "Pull the reader out and plug it in again.")
            }
        }
        open.withLock {
            $0[key] = Entry(interface: interface, link: interface.pipe.link, deviceTurn: deviceTurn)
        }
        interface.mayReset = { [weak self, key] in self?.isInUse(key) == false }
        interface.readerHangs = { [weak self, weak interface, found] in
            await self?.recover(found, from: interface) ?? CardError(.readerTimeout)
        }
        return (interface, true)
    }

    /// Resets a reader that hangs in mid-session, at most once while it is plugged in.  Nothing is sent again, since
    /// the effect of the command is unknown.
    ///
    /// - Returns: the error for the task that waits for the command.
    private func recover(_ found: FoundReader, from interface: CCIDInterface?) async -> CardError {
        let key = Key(found)
        let givenUp = CardError(
            .readerTimeout, "it hangs again after a reset over USB", hint: "Pull the reader out and plug it in again.")
        do {
            return try await runningOn { [self] in
                try await turn.take()
                defer { turn.pass() }
                await interface?.close()
                guard !isInUse(key) else { return CardError(.readerTimeout) }
                guard wereReset.withLock({ $0.insert(key).inserted }) else {
                    Self.logger.error("\(givenUp)", metadata: ["reader": "\(found.id)"])
                    return givenUp
                }
                try await reset(found)
                return CardError(
                    .readerTimeout, "it hung and was reset over USB",
                    hint: "Try again; if it recurs, pull the reader out and plug it in again.")
            }
        } catch {
            return error as? CardError ?? CardError(.readerTimeout)
        }
    }

    private func find(_ id: USBReaderID) async throws -> FoundReader {
        guard let found = try await readers().first(where: { $0.id == id }) else {
            throw CardError(.readerGone, "\(id)")
        }
        return found
    }

    /// Returns true if an interface of the same device is open: a reset would affect it.
    private func isInUse(_ key: Key) -> Bool {
        open.withLock { open in
            open.contains {
                $0.key.bus == key.bus && $0.key.address == key.address && $0.value.interface?.isOpen == true
            }
        }
    }

    /// Resets an unresponsive reader over USB and logs it.
    ///
    /// - Throws: `CardError` of kind `readerTimeout` if that is impossible, or the reader came back as another device.
    private func reset(_ found: FoundReader) async throws {
        Self.logger.warning("a reader does not answer and is reset over USB", metadata: ["reader": "\(found.id)"])
        let link = try await bus.open(found.device, as: found.function)
        do {
            try await link.reset()
        } catch let status {
            Self.logger.warning("the reader was not reset: \(status)", metadata: ["reader": "\(found.id)"])
            await link.close()
            throw CardError(.readerTimeout, hint: "Pull the reader out and plug it in again.")
        }
        await link.close()
    }

    /// Releases the interface of the slot `id`, if it is open.
    func close(_ id: USBReaderID) async {
        _ = try? await runningOn { [self] in
            try await turn.take()
            defer { turn.pass() }
            guard let found = try await readers().first(where: { $0.id == id }) else { return }
            await open.withLock { $0[Key(found)]?.interface }?.close()
        }
    }

    /// Releases all interfaces.
    func close() async {
        _ = try? await runningOn { [self] in
            try await turn.take()
            defer { turn.pass() }
            for entry in open.withLock({ Array($0.values) }) {
                await entry.interface?.close()
                await entry.link.close()
            }
        }
    }
}

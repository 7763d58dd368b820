public import SmartCard
package import USBDevices
import Waiting

/// One slot of a USB reader that this process drives without pcscd.
///
/// The first use opens the reader and claims it for this process.  The claim lasts until ``close()``, or until the
/// reader, its cards and its streams are released; a kernel driver that held the reader then gets it back.  Readers
/// with the same ``id`` share one claim.
///
/// If a reader was unplugged and plugged in again at its place, the next call opens it anew.
///
/// A reader hangs if it does not even report its slot status.  It is then reset over USB, at most once while it is
/// plugged in, and only if no other interface of its device is in use.  The command throws a `CardError` of kind
/// `readerTimeout` that says so, and is not sent again.  The streams of its slots end with the same error, and its cards
/// with them; the next call opens it anew.
public final class USBReader: CardReader {
    public let id: USBReaderID
    public let identity: ReaderIdentity
    /// The reader's description of itself.
    public let descriptor: CCIDDescriptor
    /// The reader's known departures from expected behavior.
    public let quirks: Set<ReaderQuirk>
    /// The bcdDevice, in many readers the firmware version.
    public let release: UInt16
    /// The device of this slot, with the facts that may change when it is plugged in anew.
    package let device: USBDevice

    /// The place in sysfs: `1-2.3`.
    package var place: String { device.place }

    private let claims: InterfaceClaims
    let interface = Lock<CCIDInterface?>(nil)

    init(_ found: FoundReader, claims: InterfaceClaims) {
        id = found.id
        device = found.device
        identity = found.identity
        descriptor = found.function.descriptor
        release = found.device.release
        quirks = KnownReader.quirks(
            vendorID: found.device.vendorID, productID: found.device.productID, release: found.device.release)
        self.claims = claims
    }

    /// The states of the slot: the present state first, then each change as it happens.
    ///
    /// The card is powered up to learn its ATR.  The interrupt endpoint reports changes without polling; a reader
    /// without one is asked every 400 ms.  Only this process uses the reader, so `exclusivelyHeld` is always false.
    public func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(256)) { continuation in
            // Set before any work starts that may end the stream, and never again.
            let end = Delivery<Void>()
            continuation.onTermination = { _ in end.deliver(.success(())) }
            Task { [self] in
                do {
                    let (interface, slot) = try await open()
                    guard let id = slot.states(continuation) else { return }
                    try? await end.receive {}
                    slot.removeStream(id)
                    // The stream keeps the claim until here.
                    withExtendedLifetime(interface) {}
                } catch {
                    continuation.finish(throwing: error)
                }
            }
        }
    }

    /// Powers the card and connects to it.  An earlier connection ends with `cardReset`.
    public func connect() async throws -> any CardConnection {
        try await connectToCard()
    }

    /// Connects as ``connect()`` does, and returns the concrete type.
    public func connectToCard() async throws -> USBCard {
        let (interface, slot) = try await open()
        return USBCard(reader: self, interface: interface, slot: slot, session: try await slot.connect())
    }

    /// Sends a command to the reader itself: by XfrBlock if the reader is known to accept it (class FF, ACR122U), else
    /// by Escape.
    public func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try await open().slot.transmitToReader(command)
    }

    /// Sends a vendor-specific command by PC_to_RDR_Escape and returns its answer.
    public func escape(_ command: [UInt8]) async throws -> [UInt8] {
        try await open().slot.escape(command)
    }

    /// Releases the reader, to a kernel driver if one held it, and returns when that is done.  Cards and streams of
    /// every reader with the same ``id`` end; an opening in progress is waited for.  The next call opens the reader
    /// anew.
    public func close() async {
        let interface = interface.withLock { interface in
            defer { interface = nil }
            return interface
        }
        await interface?.close()
        await claims.close(id)
    }

    private func open() async throws -> (interface: CCIDInterface, slot: CCIDSlot) {
        let opened: CCIDInterface
        if let interface = interface.withLock({ $0 }), interface.isOpen {
            opened = interface
        } else {
            opened = try await claims.interface(of: id)
            interface.withLock { $0 = opened }
        }
        guard opened.slots.indices.contains(id.slot) else { throw CardError(.readerGone) }
        return (opened, opened.slots[id.slot])
    }
}

/// The identifier of a reader: its serial number if it has one, else its place.  It survives unplugging.
///
/// As text `072F:2200@1-2#0`: vendor, product, bus and ports, slot; `072F:2200/A0123#0` with a serial number; `:1`
/// before the `#` for an interface other than number 0.
public struct USBReaderID: Hashable, Sendable, LosslessStringConvertible {
    public enum Place: Hashable, Sendable {
        case serialNumber(String)
        case port(bus: UInt8, ports: [UInt8])
    }

    public let vendorID: UInt16
    public let productID: UInt16
    public let place: Place
    public let interface: Int
    public let slot: Int

    init(vendorID: UInt16, productID: UInt16, place: Place, interface: Int, slot: Int) {
        (self.vendorID, self.productID, self.place) = (vendorID, productID, place)
        (self.interface, self.slot) = (interface, slot)
    }

    /// Parses the form of ``description``; nil for anything else.
    public init?(_ text: String) {
        // Parses from the end: slot, interface, place.  A serial number may contain any character except #.
        guard let end = text.lastIndex(of: "#"), let slot = UInt8(text[text.index(after: end)...]) else { return nil }
        var rest = text[..<end]
        let ids = rest.prefix(9).split(separator: ":", omittingEmptySubsequences: false)
        guard rest.prefix(9).utf8.count == 9, ids.count == 2, ids.allSatisfy({ $0.utf8.count == 4 }),
            let vendorID = UInt16(ids[0], radix: 16), let productID = UInt16(ids[1], radix: 16)
        else { return nil }
        rest = rest.dropFirst(9)
        var interface: UInt8 = 0
        if let colon = rest.lastIndex(of: ":"), let number = UInt8(rest[rest.index(after: colon)...]), number > 0 {
            interface = number
            rest = rest[..<colon]
        }
        switch rest.popFirst() {
        case "/" where !rest.isEmpty:
            place = .serialNumber(String(rest))
        case "@":
            let parts = rest.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 2, let bus = UInt8(parts[0]) else { return nil }
            let ports = parts[1].split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
            guard !ports.contains(nil) else { return nil }
            place = .port(bus: bus, ports: ports.compactMap(\.self))
        default: return nil
        }
        (self.vendorID, self.productID) = (vendorID, productID)
        (self.interface, self.slot) = (Int(interface), Int(slot))
    }

    public var description: String {
        func hex(_ id: UInt16) -> String { [UInt8(id >> 8), UInt8(id & 0xFF)].hex }
        let place =
            switch place {
            case .serialNumber(let number): "/\(number)"
            case .port(let bus, let ports): "@\(bus)-\(ports.map(String.init).joined(separator: "."))"
            }
        return "\(hex(vendorID)):\(hex(productID))\(place)\(interface == 0 ? "" : ":\(interface)")#\(slot)"
    }
}

import Glibc
public import SmartCardSimulator
import Synchronization

/// A host that puts a bare card into the virtual reader of vsmartcard's vpcd, a driver of pcscd with a TCP port.
///
/// There is no USB and no reader firmware: the card's APDUs arrive as the application sent them.  The driver's protocol
/// (vsmartcard, virtualsmartcard/src/vpcd) consists of frames: a length of two bytes, most significant first, and that
/// many bytes.  A frame of one byte is a control code; any other is a command APDU.
public final class VPCDHost: Sendable {
    /// The port of vpcd's first slot as it comes: 35963.
    public static let usualPort: UInt16 = 0x8C7B

    private let port: UInt16
    private let connection = Mutex<ServedCard?>(nil)

    public init(port: UInt16 = VPCDHost.usualPort) { self.port = port }

    deinit { remove() }

    /// Puts a card into the reader, in place of an earlier one.  A separate thread serves it.
    ///
    /// - Parameters:
    ///   - card: the card that the driver's slot holds.
    ///   - atr: makes the card the reader as well: this is its answer to reset, and it answers commands of class FF
    ///     itself.  Without it the answer to reset and the answers to class FF are those of a reader.
    /// - Throws: ``HostError`` if no driver listens on the port within two seconds.
    public func insert(_ card: any VirtualCard, atr: [UInt8]? = nil) throws {
        remove()
        let served = ServedCard(VPCDProtocol(card, atr: atr), descriptor: try connect())
        connection.withLock { $0 = served }
        served.start()
    }

    /// Removes the card.  Does nothing without a card.
    public func remove() {
        connection.withLock { connection in
            connection?.end()
            connection = nil
        }
    }

    /// Returns a free port whose successor, which vpcd's second slot takes, is free as well.
    ///
    /// - Throws: ``HostError`` if none is found.
    public static func freePort() throws -> UInt16 {
        for _ in 0..<100 {
            let port = UInt16.random(in: 20_000..<32_000)
            if isFree(port), isFree(port + 1) { return port }
        }
        throw HostError("no TCP port is free", hint: "Close programs that listen on ports between 20000 and 32000.")
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let descriptor = makeSocket()
        defer { close(descriptor) }
        return withAddress(INADDR_ANY, port) { bind(descriptor, $0, $1) } == 0
    }

    private func connect() throws -> Int32 {
        var error: Int32 = 0
        for _ in 0..<400 {
            let descriptor = Self.makeSocket()
            if Self.withAddress(INADDR_LOOPBACK, port, { Glibc.connect(descriptor, $0, $1) }) == 0 { return descriptor }
            error = errno
            close(descriptor)
            usleep(5000)
        }
        throw HostError(
            "vpcd does not listen on port \(port): \(String(cString: strerror(error)))",
            hint: "Check that vsmartcard-vpcd is installed and pcscd runs.")
    }

    private static func makeSocket() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    private static func withAddress(
        _ host: in_addr_t, _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = host.bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// A thread that answers the driver until the connection ends.
private final class ServedCard: Sendable {
    private let initialState: VPCDProtocol
    private let descriptor: Int32

    init(_ initialState: VPCDProtocol, descriptor: Int32) {
        self.initialState = initialState
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// The thread sees the end of its connection, and ends.
    func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    func start() {
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        let context = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let started = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<ServedCard>.fromOpaque(context).takeRetainedValue().serve()
                return nil
            }, context.toOpaque())
        if started == 0 { pthread_detach(thread) } else { context.release() }
    }

    private func serve() {
        var protocolState = initialState
        while let header = receive(2), let frame = receive(Int(header[0]) << 8 | Int(header[1])) {
            guard let answer = protocolState.answer(frame) else { continue }
            guard send([UInt8(answer.count >> 8), UInt8(answer.count & 0xFF)] + answer) else { return }
        }
    }

    private func receive(_ count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: count)
        while bytes.count < count {
            // The driver sends a length and then the bytes: it waits for an acknowledgment in between, and the kernel
            // would let it wait 40 ms.  The option wears off, so it is set each time.
            var one: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_QUICKACK, &one, socklen_t(MemoryLayout<Int32>.size))
            let received = recv(descriptor, &buffer, count - bytes.count, 0)
            guard received > 0 else { return nil }
            bytes += buffer[..<received]
        }
        return bytes
    }

    private func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }
}

/// The requests of vpcd and their answers, frame by frame.
struct VPCDProtocol {
    private let card: any VirtualCard
    /// The card's own, where it is the reader as well.
    private let atr: [UInt8]?

    init(_ card: any VirtualCard, atr: [UInt8]? = nil) {
        self.card = card
        self.atr = atr
    }

    /// - Returns: the frame to send back; nil where vpcd expects none.
    mutating func answer(_ frame: [UInt8]) -> [UInt8]? {
        switch frame {
        case []: return nil
        case [0x00], [0x01], [0x02]:  // power off, power on, reset
            card.reset()
            return nil
        case [0x04]:
            return atr ?? card.radio.atr
        case _ where frame.count == 1:
            return nil
        case _ where frame[0] == 0xFF && atr == nil:
            return pseudoAPDU(frame)
        default:
            // vpcd does not treat a silent card as a card error: no answer becomes an answer without bytes.
            let time = card.processingTime(of: frame).components
            usleep(UInt32(clamping: time.seconds * 1_000_000 + time.attoseconds / 1_000_000_000_000))
            return (card.exchange(frame) ?? []).prefix(0xFFFF).map { $0 }
        }
    }

    /// GET DATA of PC/SC part 3, 3.2.2.1.3: a reader's business, and here there is no other reader.
    private func pseudoAPDU(_ command: [UInt8]) -> [UInt8] {
        guard command.count >= 4, command[1] == 0xCA else { return [0x6E, 0x00] }
        switch (command[2], card.radio) {
        case (0x00, let radio): return radio.identifier + [0x90, 0x00]
        case (0x01, .typeA(_, _, _, let ats?)): return ats + [0x90, 0x00]
        default: return [0x6A, 0x81]
        }
    }
}

extension VirtualCardRadio {
    /// The ATR that a reader constructs for the card (PC/SC part 3, 3.1.3.2.3).
    var atr: [UInt8] {
        let historicalBytes: [UInt8] =
            switch self {
            // What follows TL, T0 and the interface bytes that T0 announces (ISO/IEC 14443-4, 5.2).
            case .typeA(_, _, _, let ats?) where ats.count > 1:
                Array(ats.dropFirst(2 + (ats[1] & 0x70).nonzeroBitCount).prefix(15))
            case .typeA(_, _, _, .some): []
            // ISO 14443 A part 3, and the name by SAK.
            case .typeA(_, _, let sak, nil): Self.storageCard(standard: 0x03, name: Self.storageCardName(sak))
            case .felica: Self.storageCard(standard: 0x11, name: [0x00, 0x3B])
            // Application data and protocol info; the MBLI of the answer to ATTRIB is not known.
            case .typeB(let atqb): Array(atqb.dropFirst(5).prefix(7)) + [0x00]
            }
        let checked = [0x80 | UInt8(historicalBytes.count), 0x80, 0x01] + historicalBytes
        return [0x3B] + checked + [checked.reduce(0, ^)]
    }

    /// `80 4F 0C`, the RID of the PC/SC workgroup, the standard, the name.
    private static func storageCard(standard: UInt8, name: [UInt8]) -> [UInt8] {
        [0x80, 0x4F, 0x0C, 0xA0, 0x00, 0x00, 0x03, 0x06, standard] + name + [0x00, 0x00, 0x00, 0x00]
    }

    /// PC/SC part 3 supplement, table 2.
    private static func storageCardName(_ sak: UInt8) -> [UInt8] {
        switch sak {
        case 0x08, 0x88: [0x00, 0x01]  // MIFARE Classic 1K
        case 0x18: [0x00, 0x02]  // MIFARE Classic 4K
        case 0x00: [0x00, 0x03]  // MIFARE Ultralight, NTAG
        case 0x09: [0x00, 0x26]  // MIFARE Mini
        default: [0x00, 0x00]
        }
    }
}

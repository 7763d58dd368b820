import SmartCard
import Synchronization
import Testing

@testable import SmartCardSimulator

/// The host's end of the bus: collects what the reader says, without waiting for delays.
final class ACR122UBus: Sendable {
    let reader: SoftwareACR122U
    private let seen = Mutex<[SoftwareUSBEvent]>([])

    init(_ reader: SoftwareACR122U) {
        self.reader = reader
        reader.observe { [weak self] event in self?.seen.withLock { $0.append(event) } }
    }

    convenience init(
        _ profile: ACR122UProfile = .firmware216, card: (any VirtualCard)? = nil, faults: [SoftwareReaderFault] = []
    ) {
        let reader = SoftwareACR122U(profile: profile, faults: faults)
        if let card { reader.insert(card) }
        self.init(reader)
    }

    /// What has been said since the last call.
    func events() -> [SoftwareUSBEvent] {
        seen.withLock { seen in
            defer { seen = [] }
            return seen
        }
    }

    func frames(from endpoint: UInt8 = 0x82) -> [[UInt8]] {
        events().compactMap { if case .ready(endpoint, let bytes, _) = $0 { bytes } else { nil } }
    }

    /// Sends frames in hexadecimal and returns the answers in hexadecimal.
    func send(_ hex: String) -> [String] {
        _ = events()
        reader.transferOut(endpoint: 0x02, bytes(hex))
        return frames().map { $0.hex(separator: " ") }
    }

    /// An APDU in hexadecimal by XfrBlock; the data of the answer.
    func apdu(_ hex: String) -> String {
        let data = bytes(hex)
        _ = events()
        reader.transferOut(endpoint: 0x02, [0x6F] + littleEndian(data.count) + [0, 0, 0, 0, 0] + data)
        return frames().map { $0.dropFirst(10).hex(separator: " ") }.joined(separator: " | ")
    }

    @discardableResult
    func powerOn() -> String {
        _ = events()
        reader.transferOut(endpoint: 0x02, bytes("62 00000000 00 00 00 0000"))
        return frames().map { $0.dropFirst(10).hex(separator: " ") }.joined(separator: " | ")
    }
}

/// Bytes of a literal; none for one that is not hexadecimal, which no expectation equals.
func bytes(_ hex: String) -> [UInt8] { (try? [UInt8](hex: hex)) ?? [] }

/// A card that answers by tables.
final class TableCard: VirtualCard {
    let radio: VirtualCardRadio
    let commands: [[UInt8]: [UInt8]]
    let nativeCommands: [[UInt8]: [UInt8]]
    /// What an unknown command gets; nil for silence.
    let otherwise: [UInt8]?
    private let log = Mutex<[String]>([])

    init(
        _ radio: VirtualCardRadio, _ commands: [String: String] = [:], native: [String: String] = [:],
        otherwise: String? = nil
    ) {
        self.radio = radio
        let table = { (pairs: [String: String]) in
            Dictionary(pairs.map { (bytes($0), bytes($1)) }, uniquingKeysWith: { a, _ in a })
        }
        self.commands = table(commands)
        nativeCommands = table(native)
        self.otherwise = otherwise.map(bytes)
    }

    func reset() { log.withLock { $0.append("reset") } }

    func exchange(_ command: [UInt8]) -> [UInt8]? {
        log.withLock { $0.append(command.hex(separator: " ")) }
        return commands[command] ?? otherwise
    }

    func exchangeNative(_ command: [UInt8]) -> [UInt8]? {
        log.withLock { $0.append("native " + command.hex(separator: " ")) }
        return nativeCommands[command]
    }

    /// What has been done with the card since the last call.
    func history() -> [String] {
        log.withLock { log in
            defer { log = [] }
            return log
        }
    }

    /// A DESFire (ACS API v2.04, 3.1.2), answering every APDU by 9000.
    static var desfire: TableCard {
        TableCard(
            .typeA(
                uid: bytes("04 1C 2B 3A 49 58 67"), atqa: [0x03, 0x44], sak: 0x20, ats: bytes("06 75 77 81 02 80")),
            otherwise: "90 00")
    }

    static func typeA(sak: UInt8, native: [String: String] = [:]) -> TableCard {
        TableCard(
            .typeA(uid: bytes("82 AC B9 5D"), atqa: [0x00, 0x04], sak: sak, ats: nil), native: native)
    }
}

import SmartCard
import SmartCardSimulator
import Synchronization
import Testing

/// Bytes of a literal; none for one that is not hexadecimal, which no expectation equals.
func bytes(_ hex: String) -> [UInt8] { (try? [UInt8](hex: hex)) ?? [] }

/// A reader that answers from a list of exchanges, each expected in its turn.
final class ScriptedReader: CardReader, CardConnection {
    let identity = ReaderIdentity(name: "script", backend: .virtual)
    let atr = ATR(bytes("3B 00"))
    let transmissionProtocol = TransmissionProtocol.t1

    private struct State {
        var script: [(command: String, answer: String)]
        /// What every command gets when the script is over.
        var otherwise: [UInt8]?
        var log: [String] = []
    }

    private let state: Mutex<State>

    /// - Parameter script: command and answer; `*` for any command, `-` for a card that does not answer.
    convenience init(_ script: KeyValuePairs<String, String>) {
        self.init(exchanges: script.map { ($0.key, $0.value) })
    }

    init(exchanges: [(command: String, answer: String)]) { state = Mutex(State(script: exchanges)) }

    /// A reader that answers every command by these bytes.
    init(always answer: [UInt8]) {
        state = Mutex(State(script: [], otherwise: answer))
    }

    /// What has been sent since the last call.
    func history() -> [String] {
        state.withLock { state in
            defer { state.log = [] }
            return state.log
        }
    }

    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try Task.checkCancellation()
        return try state.withLock { state in
            state.log.append(command.hex(separator: " "))
            if state.script.isEmpty, let otherwise = state.otherwise { return otherwise }
            guard let next = state.script.first else { throw CardError(.other, "behind the end of the script") }
            guard next.command == "*" || bytes(next.command) == command else {
                throw CardError(.other, "expected \(next.command), not \(command.hex(separator: " "))")
            }
            state.script.removeFirst()
            guard next.answer != "-" else { throw CardError(.noAnswer) }
            return bytes(next.answer)
        }
    }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        do {
            return try ResponseAPDU(await transmitToReader(command.bytes))
        } catch let error as APDUError {
            throw CardError(.malformedAnswer, cause: error)
        }
    }

    func reset() async throws { state.withLock { $0.log.append("reset") } }
    func disconnect(_ disposition: CardDisposition) async {}
    func connect() async throws -> any CardConnection { self }

    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        AsyncThrowingStream<SlotState, any Error> { $0.finish() }
    }
}

/// The card error that `body` throws, as `kind` or `kind, cause`.
func failure(_ body: () async throws -> some Any) async -> String? {
    do {
        _ = try await body()
        return nil
    } catch let error as CardError {
        return error.kind.rawValue + (error.cause.map { ", \($0)" } ?? "")
    } catch {
        return "\(error)"
    }
}

/// The software ACR122U with cards on it, a host of its own before it.
func virtualReader(_ cards: (any VirtualCard)?..., profile: ACR122UProfile = .firmware216) -> VirtualReader {
    var profile = profile
    profile.detectionDelay = .zero
    let device = SoftwareACR122U(profile: profile)
    for card in cards { if let card { device.insert(card) } }
    return VirtualReader(device, limit: .seconds(60))
}

/// A reader that remembers what it is sent.
final class SentCommands: CardReader {
    private let base: VirtualReader
    private let log = Mutex<[String]>([])

    init(_ base: VirtualReader) { self.base = base }

    var all: [String] { log.withLock { $0 } }
    func clear() { log.withLock { $0 = [] } }

    var identity: ReaderIdentity { base.identity }
    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable { base.slotStates() }
    func connect() async throws -> any CardConnection { try await base.connect() }

    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        try Task.checkCancellation()
        log.withLock { $0.append(command.hex(separator: " ")) }
        return try await base.transmitToReader(command)
    }
}

import SmartCard
import TestSupport

@testable import TravelDocument

/// Random numbers that a published example has, in its order.
struct GivenRandomSource: RandomSource {
    private var values: ArraySlice<[UInt8]>

    init(_ values: [String]) { self.values = values.compactMap { try? [UInt8](hex: $0) }[...] }

    mutating func bytes(_ count: Int) -> [UInt8] {
        guard let value = values.popFirst() else { preconditionFailure("the example has no more random numbers") }
        precondition(value.count == count, "\(value.count) bytes instead of \(count)")
        return value
    }
}

/// Random numbers of the seed, for keys of a test's own.
struct SeededRandomSource: RandomSource {
    private var generator: SplitMix

    init(fileID: String = #fileID, function: String = #function, line: Int = #line) {
        generator = Seed.generator(line, fileID: fileID, function: function)
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}

/// A chip that says what the example has it say.
final class ScriptedChip {
    private var script: ArraySlice<(command: String, response: String)>
    private(set) var mistakes: [String] = []

    init(_ script: (command: String, response: String)...) { self.script = script[...] }

    var isDone: Bool { script.isEmpty }

    func transmit(_ command: CommandAPDU) throws -> ResponseAPDU {
        let step = script.popFirst()
        if step?.command != command.bytes.hex { mistakes.append("\(command.bytes.hex), not \(step?.command ?? "-")") }
        return try ResponseAPDU([UInt8](hex: step?.response ?? "6F00"))
    }

    /// Plays a protocol to its end.
    func open(_ access: inout some AccessProtocol) throws -> AccessStep {
        var step = access.next(nil)
        while case .send(let command) = step { step = access.next(try transmit(command)) }
        return step
    }
}

func hex(_ text: String) throws -> [UInt8] { try [UInt8](hex: text.filter { !$0.isWhitespace }) }

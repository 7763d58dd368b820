import Foundation
import SmartCard

/// The published inputs of a fuzz target, Fuzz/corpora, and what little changes make of them.
public struct FuzzCorpus: Sendable {
    public let inputs: [[UInt8]]

    public init(_ target: String) throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Fuzz/corpora/\(target).txt").standardizedFileURL
        inputs = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { try [UInt8](hex: $0) }
    }

    /// So many inputs, each changed a little: the same in every run.
    public func changed(_ count: Int) -> [[UInt8]] {
        var random = SplitMix(state: 0x4D55_5441)
        return (0..<count).map { _ in
            var input = inputs.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...4, using: &random) { mutate(&input, &random) }
            return input
        }
    }

    /// One bit, one byte, a byte more or less, the end cut off, or another input's end in its place.
    private func mutate(_ input: inout [UInt8], _ random: inout SplitMix) {
        let index = Int.random(in: 0...input.count, using: &random)
        let byte = ([0x00, 0x7F, 0x80, 0xFF, .random(in: 0...255, using: &random)] as [UInt8])
            .randomElement(using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0 where index < input.count: input[index] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 1 where index < input.count: input[index] = byte ?? 0
        case 2 where index < input.count: input.remove(at: index)
        case 3: input.insert(byte ?? 0, at: index)
        case 4: input.removeLast(input.count - index)
        default:
            let other = inputs.randomElement(using: &random) ?? []
            input = input.prefix(index) + other.suffix(.random(in: 0...other.count, using: &random))
        }
    }
}

import EMVContactless
import Fuzzing
import SmartCard
import Synchronization

// The input is what a card answers to one who reads all of it: lengths, and so many bytes each.

/// Says its lines, whatever it is asked.
final class Recital: CardChannel {
    private let lines: Mutex<ArraySlice<UInt8>>

    init(_ bytes: [UInt8]) { lines = Mutex(bytes[...]) }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try lines.withLock { bytes in
            guard let length = bytes.popFirst() else { throw CardError(.cardRemoved) }
            defer { bytes = bytes.dropFirst(Int(length)) }
            return ResponseAPDU(data: Array(bytes.prefix(Int(length))), status: 0x9000)
        }
    }
}

fuzz { bytes in
    let isDone = Atomic(false)
    let inspector = CardInspector(unpredictableNumber: [1, 2, 3, 4], date: [0x26, 0x11, 0x21])
    Task.detached {
        _ = try? await inspector.inspect(Recital(bytes))
        isDone.store(true, ordering: .releasing)
    }
    while !isDone.load(ordering: .acquiring) {}
}

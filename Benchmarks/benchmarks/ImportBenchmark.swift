import CBaseline
import Foundation
import SmartCard
import SmartCardTrace

extension Benchmarks {
    /// Measures how fast logs and a capture of 100 MB become events, compared with counting the lines of the same bytes; and what
    /// they take of the memory.
    static func importing() async throws {
        for (name, block, most, unoptimized) in [
            ("pcscd", pcscdBlock, 10, 53), ("libccid", libccidBlock, 10, 61), ("pcsc-spy", pcscSpyBlock, 10, 280),
            ("pcap", try usbmonBlock(), 10, 17),
        ] {
            let chunks = stride(from: 0, to: block.count, by: 65_536).map {
                Array(block[$0..<min($0 + 65_536, block.count)])
            }
            let rounds = (Limit.isGate ? 2_000_000 : 100_000_000) / block.count
            let size = Double(rounds * block.count)
            let counting = await processorTime { for _ in 0..<rounds { for chunk in chunks { countLines(chunk) } } }
            func importAll(_ rounds: Int) throws -> Int {
                var (next, events) = (0, 0)
                var log = try TraceImport(ForeignFormat(named: name)) {
                    defer { next += 1 }
                    return next < rounds * chunks.count ? chunks[next % chunks.count] : []
                }
                while try log.next() != nil { events += 1 }
                return events
            }
            _ = try importAll(1)
            var events = 0
            let before = baseline_allocations()
            var importing = 0.0
            let growth = try await peakGrowth {
                importing = try await processorTime { events = try importAll(rounds) }
            }
            guard events > rounds * 100 else { throw CardError(.other, "\(events) events") }
            let allocations = (baseline_allocations() - before + events / 2) / events
            print(
                """
                import: \(Int(size) / 1_000_000) MB of \(name), \(events) events: \(Int(size * 1000 / importing)) MB/s \
                (lines by memchr: \(Int(size * 1000 / counting)) MB/s), \(allocations) allocations an event\
                \(Limit.verdict(atMost: most, unoptimized: unoptimized, allocations)), \(growth) KiB of memory at most\
                \(Limit.verdict(atMost: 4096, growth))
                """)
        }
    }

    @inline(never) @discardableResult
    private static func countLines(_ bytes: [UInt8]) -> Int {
        bytes.withUnsafeBytes { bytes in
            var (lines, position) = (0, 0)
            while let start = bytes.baseAddress.map({ $0 + position }),
                let end = memchr(start, 0x0A, bytes.count - position)
            {
                lines += 1
                position += UnsafeRawPointer(end) - start + 1
            }
            return lines
        }
    }

    // Blocks of about a megabyte: the exchanges of a payment, with a record of 194 bytes.
    private static let exchanges: [(command: [UInt8], response: [UInt8])] = [
        ([0x00, 0xA4, 0x04, 0x00, 0x0E] + Array("2PAY.SYS.DDF01".utf8) + [0x00], [UInt8](repeating: 0x6F, count: 45)),
        ([0x80, 0xA8, 0x00, 0x00, 0x23] + [UInt8](repeating: 0x83, count: 36), [UInt8](repeating: 0x77, count: 60)),
        ([0x00, 0xB2, 0x01, 0x0C, 0x00], record + [0x90, 0x00]),
    ]

    private static func block(_ text: (Int, [UInt8], [UInt8]) -> String) -> [UInt8] {
        var block: [UInt8] = []
        var number = 0
        while block.count < 1_000_000 {
            let (command, response) = exchanges[number % exchanges.count]
            block += text(number, command, response).utf8
            number += 1
        }
        return block
    }

    private static func spaced(_ bytes: [UInt8]) -> String { bytes.hex(separator: " ") + " " }

    private static var pcscdBlock: [UInt8] {
        block { "00000120 APDU: \(spaced($1))\n00043\(100 + $0 % 900) SW: \(spaced($2))\n" }
    }

    private static var libccidBlock: [UInt8] {
        block { number, command, response in
            let sequence = UInt8(truncatingIfNeeded: number)
            let sent = [0x6F, UInt8(command.count), 0, 0, 0, 0, sequence, 0, 0, 0] + command
            let received = [0x80, UInt8(response.count), 0, 0, 0, 0, sequence, 0, 0, 0] + response
            return "00000120 -> 000000 \(spaced(sent))\n00043100 <- 000000 \(spaced(received))\n"
        }
    }

    private static var pcscSpyBlock: [UInt8] {
        block { number, command, response in
            [
                ">|1795294760|\(number)|SCardTransmit", "0x5C500038", "0x00000002", "0x00000010",
                "0x000000\([UInt8(command.count)].hex)", spaced(command), "0x00000001", "0x00000010",
                "0x000000\([UInt8(response.count)].hex)", spaced(response),
                "<|1795294760|\(number)|SCardTransmit|Command successful.|0x00000000",
            ].map { "7F9A716FFB80@\($0)\n" }.joined()
        }
    }

    /// A pcapng file with one section; several of them in sequence form one file, too.
    private static func usbmonBlock() throws -> [UInt8] {
        guard let usbmon = ForeignFormat(named: "usbmon") else { throw CardError(.other, "no usbmon") }
        var block: [UInt8] = []
        var capture = try TraceExport(usbmon) { block += $0 }
        for number in 0..<3000 {
            let (command, response) = exchanges[number % exchanges.count]
            try capture.write(TraceEvent(at: .milliseconds(2 * number), .sent(.apdu, command)))
            try capture.write(TraceEvent(at: .milliseconds(2 * number + 1), .received(.apdu, response)))
        }
        try capture.finish()
        return block
    }
}

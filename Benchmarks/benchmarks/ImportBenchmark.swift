import Foundation
import SmartCard
import SmartCardTrace

extension Benchmarks {
    /// Measures how fast logs and a capture of 100 MB become events, compared with counting the lines of the same
    /// bytes.
    static func importing() async throws {
        for (name, block) in [
            ("pcscd", pcscdBlock), ("libccid", libccidBlock), ("pcsc-spy", pcscSpyBlock), ("pcap", try usbmonBlock()),
        ] {
            let chunks = stride(from: 0, to: block.count, by: 65_536).map { block[$0..<min($0 + 65_536, block.count)] }
            let rounds = 100_000_000 / block.count
            let size = Double(rounds * block.count)
            let peak = memory("VmHWM")
            var (lines, events) = (0, 0)
            let results = try paired(times: 3) {
                lines = 0
                forEachChunk(chunks, rounds) { bytes in
                    bytes.withUnsafeBytes { bytes in
                        var position = 0
                        while let start = bytes.baseAddress.map({ $0 + position }),
                            let end = memchr(start, 0x0A, bytes.count - position)
                        {
                            lines += 1
                            position += UnsafeRawPointer(end) - start + 1
                        }
                    }
                }
            } _: {
                events = 0
                var next = 0
                var log = try TraceImport(ForeignFormat(named: name)) {
                    defer { next += 1 }
                    return next < rounds * chunks.count ? Array(chunks[next % chunks.count]) : []
                }
                while try log.next() != nil { events += 1 }
            }
            guard events > rounds * 100 else { throw CardError(.other, "\(events) events") }
            let speeds = [results.baseline, results.ours].map { size * 1000 / median($0) }
            print("import: \(Int(size) / 1_000_000) MB of \(name), \(lines) lines, \(events) events")
            print("  counting lines by memchr: \(Int(speeds[0])) MB/s")
            print(
                "  TraceImport: \(Int(speeds[1])) MB/s, \(Int(speeds[0] / speeds[1])) times as long"
                    + Limit.verdict("50 MB/s", isKept: speeds[1] >= 50))
            let growth = memory("VmHWM") - peak
            print("  peak memory grew by \(growth) KiB" + Limit.verdict("4096 KiB", isKept: growth <= 4096))
        }
    }

    private static func forEachChunk(_ chunks: [ArraySlice<UInt8>], _ rounds: Int, _ body: ([UInt8]) -> Void) {
        for _ in 0..<rounds { for chunk in chunks { body(Array(chunk)) } }
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

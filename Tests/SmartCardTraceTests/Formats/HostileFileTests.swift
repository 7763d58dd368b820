import SmartCardTrace
import TestSupport
import Testing

@Suite("Files that are broken", .computing)
struct HostileFileTests {
    private static let texts: [String: String] = [
        "apdu": "apdu-trace 1\n0.000000000 > apdu 00A40400\n0.000000001 < apdu 9000\n0.000000001 note \"x\\u{41}\"\n",
        "pcsc-spy": PCSCSpyLogTests.sample, "libccid": LibCCIDLogTests.sample, "pcscd": PCSCDLogTests.sample,
        "opensc": OpenSCLogTests.sample, "libnfc": NFCLibraryLogTests.libnfc, "nfcpy": NFCLibraryLogTests.nfcpy,
        "apduplay": APDUPlayLogTests.sample, "scriptor": ScriptorTests.sample, "ledger": LedgerLogTests.sample,
    ]

    /// By the name of the format, or what a capture holds.
    static let samples: [String: [UInt8]] = texts.mapValues { Array($0.utf8) }.merging([
        "proxmark": ProxmarkTraceTests.bytes, "pcap iso14443": exported("iso14443"), "pcap usbmon": exported("usbmon"),
        "pcap gsmtap": gsmtap,
    ]) { $1 }

    private static func exported(_ format: String) -> [UInt8] {
        (try? export(Trace(Array(WiresharkTests.trace.events.prefix(6))), format)) ?? []
    }

    /// A message of SIMtrace (gsmtap.h) with an exchange that has SELECT of 3F00, in UDP in IPv4, twice; and one of which
    /// the datagram holds a byte.
    private static let gsmtap: [UInt8] = {
        let writer = CaptureTests.Writer(isBig: false)
        let exchange: [UInt8] = [0xA0, 0xA4, 0x00, 0x00, 0x02, 0x3F, 0x00, 0x9F, 0x17]
        let message: [UInt8] = [2, 4, 4] + [UInt8](repeating: 0, count: 13) + exchange
        let packets = [message, message, [2]].map { payload -> [UInt8] in
            let ports: [UInt8] = [0x12, 0x79, 0x12, 0x79]
            let udp = ports + [0, UInt8(payload.count + 8), 0, 0] + payload
            let header: [UInt8] = [0x45, 0, 0, UInt8(udp.count + 20), 0, 0, 0, 0, 64, 17, 0, 0]
            return writer.packet(0, 0, header + [127, 0, 0, 1, 127, 0, 0, 1] + udp)
        }
        return writer.section + writer.interface(101) + packets.flatMap { $0 }
    }()

    private static func format(_ name: String) -> ForeignFormat? {
        ForeignFormat(named: name.split(separator: " ").first.map(String.init) ?? "")
    }

    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        /// xorshift64* (Vigna, 2014).
        mutating func next() -> UInt64 {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return state &* 2_685_821_657_736_338_717
        }
    }

    @Test("of any format are read or refused with a place, and nothing traps", arguments: samples.keys.sorted())
    func mutations(name: String) throws {
        let format = try #require(Self.format(name))
        let sample = try #require(Self.samples[name])
        #expect(try TraceImport(bytes: sample).format.name == format.name)
        #expect(try !Trace(reading: TraceImport(format, bytes: sample)).events.isEmpty)
        var generator = Generator(state: 1)
        var refused = 0
        for _ in 0..<Tier.rounds(20, thorough: 100) {
            var bytes = sample
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let at = Int.random(in: 0..<bytes.count, using: &generator)
                let end = min(bytes.count, at + Int.random(in: 1...40, using: &generator))
                switch Int.random(in: 0..<5, using: &generator) {
                case 0: bytes[at] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes[at] = Array("0FfXx|:>< \n\r@\"[(".utf8).randomElement(using: &generator) ?? 0
                case 2 where bytes.count > 80: bytes.removeSubrange(at..<end)
                case 3: bytes.insert(contentsOf: bytes[at..<end], at: Int.random(in: 0..<at + 1, using: &generator))
                default: bytes.insert(contentsOf: "99999999999999999999".utf8, at: at)
                }
            }
            do {
                var file = try TraceImport(format, bytes: bytes)
                while let event = try file.next() { #expect(event.time >= .zero) }
            } catch let error as TraceError {
                refused += 1
                #expect(error.place != nil)
            }
        }
        #expect(refused < 100)
    }

    /// Those that consist of lines.
    private static let logs = samples.keys.filter { !$0.hasPrefix("pcap") && !$0.hasPrefix("proxmark") }.sorted()

    @Test("by a line without end are refused before it is read whole", arguments: logs)
    func endless(name: String) throws {
        var given = try #require(Self.samples[name])
        var read = 0
        #expect(throws: TraceError.self) {
            var file = try TraceImport(Self.format(name)) {
                defer { given = [UInt8](repeating: UInt8(ascii: "0"), count: 65_536) }
                read += given.count
                return given
            }
            while try file.next() != nil {}
        }
        #expect(read < 1_000_000)
    }
}

import Foundation
import SmartCard
import SmartCardTrace
import TestSupport
import Testing

/// Captures that Wireshark's own programs judge and make: tshark and text2pcap 4.0.
@Suite("Captures, as Wireshark has them", .enabled(if: Program.isInstalled("tshark"), "tshark is not installed"))
struct WiresharkTests {
    /// A command longer than a frame, and an ordinary one.
    static let commands: [[UInt8]] = [
        [0x00, 0xA4, 0x04, 0x00, 0x0E] + Array("2PAY.SYS.DDF01".utf8) + [0x00],
        [0x00, 0xD6, 0x00, 0x00, 0x00, 0x01, 0x2C] + (0..<300).map { UInt8($0 & 0xFF) },
        [0x00, 0xB2, 0x01, 0x0C, 0x00],
    ]
    static let responses: [[UInt8]] = [
        [0x6F, 0x02, 0x84, 0x00, 0x90, 0x00], [0x90, 0x00], (0..<256).map { UInt8($0 & 0xFF) } + [0x90, 0x00],
    ]

    static let trace = Trace(
        [
            TraceEvent(at: .zero, .field(isOn: true)),
            TraceEvent(at: .milliseconds(1), .connected(ATR([0x3B, 0x81, 0x80, 0x01, 0x80, 0x80]), .t1)),
        ]
            + zip(commands, responses).enumerated().flatMap { index, exchange in
                [
                    TraceEvent(at: .milliseconds(10 * index + 10), .sent(.apdu, exchange.0)),
                    TraceEvent(at: .milliseconds(10 * index + 15), .received(.apdu, exchange.1)),
                ]
            } + [
                TraceEvent(at: .milliseconds(100), .disconnected(.powerOff)),
                TraceEvent(at: .milliseconds(101), .field(isOn: false)),
            ])

    @Test("APDUs written as frames of ISO 14443 are dissected down to ISO 7816-4")
    func frames() async throws {
        let capture = try export(Self.trace, "iso14443")
        let rows = try await tshark(
            capture,
            fields: [
                "iso14443.event", "iso7816.apdu.ins", "iso7816.apdu.sw1", "_ws.malformed", "iso14443.s_block_cmd",
            ],
            more: ["-d", "iso14443.subdissector,iso7816"])
        #expect(rows.map { $0[0] }.prefix(3) == ["0xfc", "0xfe", "0xff"])
        #expect(rows.last?[0] == "0xfd")
        #expect(rows.map { $0[1] }.filter { !$0.isEmpty } == ["0xa4", "0xd6", "0xb2"])
        #expect(rows.map { $0[2] }.filter { !$0.isEmpty }.count == 3)
        // Wireshark 4.0 looks for a field in S(DESELECT), which has none (ISO/IEC 14443-4, 7.1.1.3), and misses its end.
        #expect(rows.allSatisfy { $0[3].isEmpty || $0[4] == "0x00" })
        #expect(rows.count { !$0[3].isEmpty } <= 2)
        let checksums = try await tshark(capture, fields: ["iso14443.crc.status", "iso14443.block_type"])
        #expect(checksums.allSatisfy { $0[0] == "1" || $0[0] == "" })
        #expect(checksums.contains { $0[0] == "1" })
        // Wireshark puts the chains together again.
        let reassembled = try await tshark(capture, fields: ["iso14443.apdu_reassembled.length"])
        #expect(reassembled.map { $0[0] }.filter { !$0.isEmpty } == ["307", "258"])
    }

    @Test("APDUs written as CCID messages are dissected as such")
    func messages() async throws {
        let capture = try export(Self.trace, "usbmon")
        let rows = try await tshark(
            capture, fields: ["usbccid.bMessageType", "usbccid.dwLength", "usbccid.bSeq", "_ws.malformed"]
        )
        .filter { !$0[0].isEmpty }
        #expect(
            rows.map { $0.joined(separator: " ") } == [
                "0x62 0 0 ", "0x80 6 0 ", "0x6f 20 1 ", "0x80 6 1 ", "0x6f 307 2 ", "0x80 2 2 ", "0x6f 5 3 ",
                "0x80 258 3 ", "0x63 0 4 ", "0x81 0 4 ",
            ])
        let classes = try await tshark(capture, fields: ["usb.bInterfaceClass", "usbccid.dwMaxCCIDMessageLength"])
        #expect(classes.contains(["0x0b", "65556"]))
    }

    @Test("what is written is read again, and comes to the same APDUs", arguments: ["iso14443", "usbmon"])
    func roundTrip(format: String) throws {
        var file = try TraceImport(bytes: export(Self.trace, format))
        #expect(file.format.name == "pcap")
        var raiser = LayerRaiser()
        var events: [TraceEvent] = []
        while let event = try file.next() { events += raiser.raise(event) }
        let whats = Self.trace.events.map(\.what).filter { what in
            if case .field = what { format == "iso14443" } else { true }
        }
        #expect(events.map(\.what) == whats)
        #expect(events.filter { if case .sent = $0.what { true } else { false } }.count == 3)
    }

    @Test("frames, messages and notes come back as they were, with their times")
    func identity() throws {
        let frames = Trace([
            TraceEvent(at: .zero, .sent(.rf, [0xE0, 0x80, 0x31, 0x73])),
            TraceEvent(at: .nanoseconds(1_000_001), .note("ä")),
            TraceEvent(at: .nanoseconds(1_000_001), .received(.rfPayload, [0x06, 0x75, 0x77, 0x81, 0x02, 0x80])),
            TraceEvent(at: .seconds(5_000_000_000), .field(isOn: false)),
        ])
        var back = try Trace(reading: TraceImport(bytes: export(frames, "iso14443")))
        // A comment stands within the packet that it is about.
        back.events.swapAt(1, 2)
        #expect(back == frames)
        let messages = Trace([
            TraceEvent(at: .zero, .received(.ccid, [0x50, 0x03])),
            TraceEvent(at: .milliseconds(1), .sent(.ccid, [0x65, 0, 0, 0, 0, 0, 1, 0, 0, 0])),
            TraceEvent(at: .milliseconds(2), .received(.ccid, [0x81, 0, 0, 0, 0, 0, 1, 0, 0, 0])),
        ])
        #expect(try Trace(reading: TraceImport(bytes: export(messages, "usbmon"))) == messages)
    }

    /// Containers that editcap makes of a capture: other endianness is not among its arts, see CaptureTests.
    @Test("other programs' containers hold the same", arguments: ["pcap", "nsecpcap", "pcapng"])
    func containers(type: String) async throws {
        let directory = try TemporaryDirectory()
        try Data(export(Self.trace, "iso14443")).write(to: directory.url("in.pcapng"))
        let outcome = try await Program.run(
            ["editcap", "-F", type, directory.url("in.pcapng").path, directory.url("out").path])
        #expect(outcome.status == 0, "\(outcome)")
        let back = try Trace(reading: TraceImport(bytes: Data(contentsOf: directory.url("out")))).raised().trace
        #expect(back.events.map(\.what) == Self.trace.events.map(\.what))
    }

    @Test("SIM exchanges in UDP, over Ethernet, IPv4 and IPv6, that text2pcap makes", arguments: ["4", "6"])
    func gsmtap(version: String) async throws {
        let directory = try TemporaryDirectory()
        // An ATR, then SELECT 3F00 and its answer, then READ BINARY in four parts (gsmtap.h).
        let packets = [
            "02 04 04 00 0000 00 00 00000000 01 00 00 00  3B 02 14 50",
            "02 04 04 00 0000 00 00 00000000 00 00 00 00  A0 A4 00 00 02 3F 00 9F 22",
            "02 04 04 00 0000 00 00 00000000 04 00 00 00  A0 B0 00 00 02",
            "02 04 04 00 0000 00 00 00000000 06 00 00 00  AA BB",
            "02 04 04 00 0000 00 00 00000000 07 00 00 00  90 00",
        ]
        let text = try packets.map { "0000 " + (try [UInt8](hex: $0.filter { $0 != " " })).hex(separator: " ") }
        try Data(text.joined(separator: "\n").utf8).write(to: directory.url("in.txt"))
        let addresses = version == "4" ? ["-4", "127.0.0.1,127.0.0.1"] : ["-6", "::1,::1"]
        let outcome = try await Program.run(
            ["text2pcap", "-q"] + addresses
                + ["-u", "1000,4729", directory.url("in.txt").path, directory.url("out").path])
        #expect(outcome.status == 0, "\(outcome)")
        var file = try TraceImport(bytes: Data(contentsOf: directory.url("out")))
        var events: [TraceEvent.What] = []
        while let event = try file.next() { events.append(event.what) }
        // text2pcap says in a comment what it has made the file of.
        if case .note? = events.first { events.removeFirst() }
        #expect(
            events == [
                .connected(ATR([0x3B, 0x02, 0x14, 0x50]), .t0),
                .sent(.apdu, [0xA0, 0xA4, 0x00, 0x00, 0x02, 0x3F, 0x00]), .received(.apdu, [0x9F, 0x22]),
                .sent(.apdu, [0xA0, 0xB0, 0x00, 0x00, 0x02]), .received(.apdu, [0xAA, 0xBB, 0x90, 0x00]),
            ])
    }

    private func tshark(_ capture: [UInt8], fields: [String], more: [String] = []) async throws -> [[String]] {
        let directory = try TemporaryDirectory()
        try Data(capture).write(to: directory.url("capture.pcapng"))
        let outcome = try await Program.run(
            ["tshark", "-n", "-r", directory.url("capture.pcapng").path, "-T", "fields"]
                + fields.flatMap { ["-e", $0] } + more,
            environment: ["HOME": directory.url("").path, "WIRESHARK_RUN_FROM_BUILD_DIRECTORY": "0"])
        #expect(outcome.status == 0, "\(outcome)")
        return outcome.output.split(separator: "\n", omittingEmptySubsequences: true).map {
            $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }
}

/// What `format` makes of `trace`.
func export(_ trace: Trace, _ format: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var file = try TraceExport(#require(ForeignFormat(named: format))) { bytes += $0 }
    for event in trace.events { try file.write(event) }
    try file.finish()
    return bytes
}

/// A directory that goes with the value.
private final class TemporaryDirectory {
    private let root = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

    init() throws { try FileManager.default.createDirectory(at: root, withIntermediateDirectories: false) }

    deinit { try? FileManager.default.removeItem(at: root) }

    func url(_ name: String) -> URL { root.appendingPathComponent(name) }
}

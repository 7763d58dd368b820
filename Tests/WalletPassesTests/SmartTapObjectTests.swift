import SmartCard
import TestSupport
import Testing

@testable import WalletPasses

/// What stands in a record bundle, and zlib.
@Suite struct SmartTapObjectTests {
    @Test("The compressed bundle that proxmark3 publishes inflates to 1312 bytes: a loyalty pass and a customer")
    func captured() throws {
        let clear = try Inflater.inflate(
            try SmartTapVector.bytes(SmartTapVector.captured), limit: SmartTap.maximumLength)
        #expect(clear.count == 1312)
        let objects = try SmartTapObject.objects(clear)
        guard case .pass(let pass)? = objects.first, case .customer(let customer)? = objects.last else {
            Issue.record("\(objects)")
            return
        }
        // As proxmark3's own test expects them.
        #expect(objects.count == 2 && pass.kind == .loyalty)
        #expect(pass.objectID?.hex == "21C94A5101E25EAA" && pass.issuer?.kind == .merchant)
        #expect(pass.redemptionValue?.bytes.count == 1181)
        #expect(pass.redemptionValue?.text?.hasPrefix(#"{"data-0":"data_here0","data-1":"#) == true)
        #expect(customer.identifier?.bytes == [UInt8](repeating: 0, count: 16) && customer.language == "en")
        #expect(customer.tapID?.bytes.count == 16 && customer.issuer?.kind == .wallet)
    }

    @Test("The vector's compressed contents inflate to its clear ones")
    func inflated() throws {
        let bytes = try SmartTapVector.bytes(SmartTapVector.compressed)
        #expect(try Inflater.inflate(bytes, limit: 100).hex == SmartTapVector.clear)
        for count in 0..<bytes.count {
            #expect(throws: Inflater.Fault.malformed) { try Inflater.inflate(Array(bytes.prefix(count)), limit: 100) }
        }
        #expect(throws: Inflater.Fault.malformed) { try Inflater.inflate(bytes + [0], limit: 100) }
        let length = SmartTapVector.clear.count / 2
        #expect(throws: Inflater.Fault.tooLong) { try Inflater.inflate(bytes, limit: length - 1) }
        #expect(try Inflater.inflate(bytes, limit: length).count == length)
    }

    @Test(
        "A bomb of 64 MiB is refused within the bound",
        .enabled(if: Program.isInstalled("python3"), "python3 is not installed"))
    func bomb() async throws {
        let script = """
            import zlib
            c = zlib.compressobj(9); block = bytes(1 << 20)
            out = b"".join(c.compress(block) for _ in range(64)) + c.flush()
            print(out.hex())
            """
        let outcome = try await Program.run(["/usr/bin/python3", "-c", script])
        let bomb = try [UInt8](hex: outcome.output.filter { !$0.isWhitespace })
        #expect(bomb.count < 80_000)
        #expect(throws: Inflater.Fault.tooLong) { try Inflater.inflate(bomb, limit: SmartTap.maximumLength) }
    }

    private static func object(_ name: String, _ fields: [NDEFRecord]) -> [UInt8] {
        let issuer = SmartTapRecords.record("i", [0x04, 0x01, 0x0A, 0x0B, 0x0C, 0x0D])
        return NDEFMessage([SmartTapRecords.record("asv", [issuer, SmartTapRecords.record(name, fields)])]).bytes
    }

    @Test(
        "Each kind of pass is known by its record",
        arguments: [
            // Google's APDU reference; kormax, Records; proxmark3, gst_object_types.
            ("ly", .loyalty), ("of", .offer), ("gc", .giftCard), ("pl", .privateLabelCard), ("et", .eventTicket),
            ("fl", .flight), ("tr", .transit), ("gr", .generic), ("gp", .genericPrivate),
        ] as [(String, SmartTapPass.Kind)])
    func kinds(_ name: String, _ kind: SmartTapPass.Kind) throws {
        let number = NDEFRecord(
            unchecked: .wellKnown, Array("T".utf8), Array("n".utf8), [0x02] + Array("en77".utf8))
        let fields = [
            SmartTapRecords.record("oid", [0x04, 1, 2, 3, 4, 5, 6, 7, 8]), number,
            SmartTapRecords.record("p", [0x05, 0x12, 0x34]), SmartTapRecords.record("c1", [0x01] + Array("987".utf8)),
            SmartTapRecords.record("ex", [0x03, 0x00, 0x31, 0x00, 0x32]), SmartTapRecords.record("tcr", [0x04, 0x09]),
        ]
        let objects = try SmartTapObject.objects(Self.object(name, fields))
        guard case .pass(let pass)? = objects.first, objects.count == 1 else {
            Issue.record("\(objects)")
            return
        }
        #expect(pass.kind == kind && pass.redemptionValue?.text == "77" && pass.objectID == [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(pass.pin?.text == "1234" && pass.verificationCode?.text == "987" && pass.expiration?.text == "12")
        #expect(pass.transactionCounter?.bytes == [9] && pass.issuer?.identifier == [0x0A, 0x0B, 0x0C, 0x0D])
    }

    @Test("Records that are not known are skipped; deep, torn and too many ones are refused or bounded")
    func hostile() throws {
        #expect(try SmartTapObject.objects(Self.object("zz", [])) == [])
        #expect(try SmartTapObject.objects([]) == [])
        let clear = try SmartTapVector.bytes(SmartTapVector.clear)
        for count in 1..<clear.count {
            #expect(throws: SmartTapFault.self) { try SmartTapObject.objects(Array(clear.prefix(count))) }
        }
        // Records in records: only the layers that Smart Tap has are opened.
        var nested: [UInt8] = []
        for _ in 0..<2000 { nested = NDEFMessage([SmartTapRecords.record("asv", nested)]).bytes }
        #expect(try SmartTapObject.objects(nested) == [])
        let passes = [NDEFRecord](repeating: SmartTapRecords.record("ly", []), count: 65)
        let many = NDEFMessage([SmartTapRecords.record("asv", passes)]).bytes
        #expect(throws: SmartTapFault.tooLong) { try SmartTapObject.objects(many) }
    }
}

import Foundation
import SmartCard
import TestSupport
import Testing

@testable import WalletPasses

@Suite struct PassDataTests {
    /// TEST
    private static let member = "MARKED-MEMBER-QX7/83917264"

    private static func record(_ name: String, _ payload: [UInt8]) -> NDEFRecord {
        NDEFRecord(unchecked: .external, Array(name.utf8), [], payload)
    }

    /// A gift card and its customer, each value marked.
    private static func objects() throws -> [SmartTapObject] {
        let value = [0x04] + Array(member.utf8)
        let fields = ["oid", "n", "p", "c1", "ex", "tcr"].map { record($0, value) }
        let customer = ["cid", "cut"].map { record($0, value) }
        let bundle = NDEFMessage([
            record("asv", NDEFMessage([record("gc", NDEFMessage(fields).bytes)]).bytes),
            record("asv", NDEFMessage([record("cus", NDEFMessage(customer).bytes)]).bytes),
        ])
        return try SmartTapObject.objects(inBundle: bundle.bytes, isCompressed: false)
    }

    @Test("Nothing of a pass is printed, whatever holds it, and however it is printed")
    func printed() throws {
        let data = PassData(Array(Self.member.utf8))
        let objects = try Self.objects()
        #expect(objects.count == 2)
        guard case .pass(let pass)? = objects.first else {
            Issue.record("no pass")
            return
        }
        #expect(pass.objectID == Array(Self.member.utf8) && pass.pin?.text == Self.member)
        let entries = [Pass(objects), Pass(data: data, date: .now, mobileToken: data)].map {
            PassReading.Entry("loyalty", .apple, .success, $0)
        }
        let outcome = PassReading.Outcome(mode: .passOnly, wallet: .apple, entries: entries)
        let message = VASCryptogram.Message(date: .now, data: data, isOlderVariant: false)
        for value in [data, objects, entries, outcome, message, PassReading.Step.finished(outcome)] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] {
                #expect(Taint.found(Taint.forms(of: Self.member), in: Data(text.utf8)) == [], "\(text)")
            }
        }
        // What a search would find.
        #expect(!Taint.found(Taint.forms(of: Self.member), in: Data("\(data.bytes)".filter { $0 != " " }.utf8)).isEmpty)
    }

    @Test("Contents are compared, hashed and read by their bytes")
    func contents() {
        let (a, b) = (PassData(Array("A1".utf8)), PassData(Array("A1".utf8)))
        #expect(a == b && Set([a, b]).count == 1 && a != PassData(Array("A2".utf8)) && a != PassData([]))
        #expect(a.text == "A1" && a.bytes == [0x41, 0x31] && a.count == 2)
        #expect(PassData([]).text == "" && PassData([]).bytes == [] && PassData([0xFF]).text == nil)
    }

    @Test("What is wiped is zeros")
    func wiped() {
        var bytes: [UInt8] = [1, 2, 3]
        bytes.wipe()
        #expect(bytes == [0, 0, 0])
        bytes = []
        bytes.wipe()
        #expect(bytes.isEmpty)
    }

    @Test("Each reason is one sentence for people, without a case of Swift's")
    func words() {
        let statuses: [PassReading.Status] = [
            .success, .notFound, .notActivated, .wrongParameters, .wrongLength, .userInterventionRequired,
            .incorrectData, .unsupportedVersion,
        ]
        let failures: [PassReading.Failure] = [
            .status(0x6982), .malformed, .noPass, .notDecrypted(.notAuthentic), .replayed, .clockDiffers(seconds: -400),
            .clockDiffers(seconds: 400), .rejected(nil), .smartTap(.notAuthentic),
        ]
        let words: [StatusWord] = [
            0x9200, 0x9301, 0x9400, 0x9402, 0x9403, 0x9404, 0x9405, 0x9406, 0x9407, 0x9408, 0x9409, 0x9500, 0x9502,
            0x9503, 0x6A82, 0x9002, 0x9100,
        ]
        let texts =
            statuses.map { "\($0)" } + failures.map { "\(PassReading.Status.readFailure($0))" }
            + words.map { "\(PassReading.Failure.refused(SmartTapStatus($0)))" }
            + SmartTapSessionStatus.allCases.map { "\(PassReading.Failure.rejected($0))" }
        for text in texts {
            #expect(
                !text.isEmpty && !text.contains("\n") && !text.contains("(") && text.first?.isLowercase == true,
                "\(text)")
        }
        #expect(
            "\(PassReading.Failure.clockDiffers(seconds: -400))"
                == "the phone's clock is 400 seconds behind this machine's")
    }
}

import Foundation
import TestSupport
import Testing

@testable import CardReceipts

/// The last value that a receipt takes and the first that it does not.
@Suite struct ReceiptBoundaryTests {
    @Test("account numbers of 13 to 19 digits are masked whole; two characters between digits end a number")
    func accountNumbers() {
        // TEST: numbers of no card, with check digits by ISO/IEC 7812-1, annex B.
        for (number, masked) in [
            ("4000000000006", "*********0006"), ("4000000000000000006", "***************0006"),
            ("4-0-0-0-0-0-0-0-0-0-0-0-6", "*-*-*-*-*-*-*-*-*-0-0-0-6"),
        ] {
            #expect(number.receiptText == masked)
        }
        #expect("4000--000000006".receiptText == "4000--000000006")
    }

    @Test("fields of EMV are taken up to their lengths", arguments: [4, 5, 16, 17])
    func applicationIdentifier(_ count: Int) {
        let receipt = ReceiptDetails(
            applicationPreferredName: "V", dedicatedFileName: String(repeating: "A0", count: count),
            accountType: "Credit", cardholderVerificationMethod: .noCVM)
        let isTaken = (try? Sample.parameters(card: Sample.card(receipt: receipt))) != nil
        #expect(isTaken == (5...16).contains(count))
    }

    @Test("issuer application data has up to 32 bytes, an authorization code up to 6 characters")
    func lengths() {
        func isTaken(_ data: Int, _ code: Int) -> Bool {
            let receipt = ReceiptDetails(
                applicationPreferredName: "V", dedicatedFileName: "A0000000031010",
                issuerApplicationData: String(repeating: "00", count: data), accountType: "Credit",
                cardholderVerificationMethod: .noCVM, authorizationCode: String(repeating: "1", count: code))
            return (try? Sample.parameters(card: Sample.card(receipt: receipt))) != nil
        }
        #expect(isTaken(1, 1) && isTaken(32, 6) && !isTaken(33, 6) && !isTaken(32, 7))
    }

    @Test("a refund may be of all of the charge")
    func wholeRefund() throws {
        let content = try ReceiptContent(
            merchant: Sample.merchant(), order: ReceiptOrder(lineItems: [], totals: ReceiptTotals(subtotal: 1234)),
            refundOf: Sample.charge(), amount: 1234, date: Date(timeIntervalSince1970: 1_795_439_109), timeZone: .gmt)
        #expect(content.parameters.amount == 1234)
    }

    @Test("times are those of the years 1000 to 9998, with offsets of whole minutes")
    func times() throws {
        for (seconds, isTaken) in [
            (-30_610_224_001.0, false), (-30_610_224_000, true), (253_370_764_799, true), (253_370_764_800, false),
        ] {
            let time = try? ReceiptTime(Date(timeIntervalSince1970: seconds), timeZone: .gmt)
            #expect((time != nil) == isTaken, "\(seconds)")
        }
        // Amsterdam's local time until 1937 was 19 minutes and 32 seconds before Greenwich.
        let zone = try #require(TimeZone(secondsFromGMT: 19 * 60 + 32))
        #expect(try ReceiptTime(Date(timeIntervalSince1970: 0), timeZone: zone).text == "1970-01-01T00:19:00+00:19")
        #expect(throws: ReceiptError.malformedField(.dateAndTime)) { try ReceiptTime("2026-11-22T14:05:09+01:60") }
        #expect(try ReceiptTime("2026-11-22T14:05:09+01:59").secondsFromGMT == 7140)
    }

    @Test("an order's name has up to 240 letters")
    func orderNames() throws {
        let folder = try TemporaryFolder()
        let store = ReceiptStore(folder: folder.url)
        let longest = String(repeating: "x", count: 240)
        try store.save(Sample.content(), order: longest)
        #expect(try store.load(order: longest) == Sample.content())
    }
}

import SmartCard
import Testing
import ToolSupport

@Suite struct RedactorTests {
    /// The names of ISO/IEC 7816-6 and EMV Book 3, Annex A, here in another object of the same card.
    @Test(
        "a name is hidden wherever the card repeats it, in letters and in hexadecimal digits",
        arguments: [0x5F20, 0x9F0B, 0x5B])
    func names(_ tag: TLVTag) {
        let redactor = Redactor(hiding: [(tag, Array("TAPPER/TESSA".utf8))])
        #expect(
            redactor.redacted("label TAPPER/TESSA, 5441505045522F5445535341")
                == "label ************, ************************")
    }

    @Test("an account number is masked, and a label is not") func numbers() throws {
        let redactor = Redactor(hiding: [
            (0x5A, try [UInt8](hex: "4761739001010010")), (0x50, Array("VISA DEBIT".utf8)),
        ])
        #expect(redactor.redacted("VISA DEBIT 4761739001010010") == "VISA DEBIT 476173******0010")
    }
}

import EMVContactless
import Testing
import ToolReaders
import ToolSupport

@Suite struct ExceptionListTests {
    private static let list = """
        # published test numbers
        4761739001010010
          5413330089010434 01   # this card alone

        5413330089010434\t10
        """

    @Test(
        arguments: [
            ("4761739001010010", 1, true), ("4761739001010010", nil, true), ("5413330089010434", 0x01, true),
            ("5413330089010434", 0x10, true), ("5413330089010434", 0x0A, false), ("5413330089010434", 2, false),
            ("5413330089010434", nil, true), ("4111111111111111", 1, false), ("476173900101001", 1, false),
        ] as [(String, UInt8?, Bool)])
    func contains(_ digits: String, _ sequence: UInt8?, _ expected: Bool) throws {
        let list = try ExceptionList(parsing: Self.list)
        #expect(list.contains(try #require(PAN(digits: digits)), sequenceNumber: sequence) == expected)
    }

    /// The whole account is more than one card of it, in whatever order they stand.
    @Test(arguments: ["4761739001010010 01\n4761739001010010", "4761739001010010\n4761739001010010 01"])
    func theWholeAccount(_ text: String) throws {
        let pan = try #require(PAN(digits: "4761739001010010"))
        #expect(try ExceptionList(parsing: text).contains(pan, sequenceNumber: 7))
    }

    /// The complaint does not quote the line.
    @Test(arguments: [
        "1234567", "47617390010100100000", "4761-7390", "4761739001010010 1", "4761739001010010 1A",
        "4761739001010010 01 02", "４７６１７３９００１０１００１０",
    ])
    func mistakes(_ line: String) {
        let error = #expect(throws: ExceptionList.Malformed.self) { try ExceptionList(parsing: "\n\r\n" + line) }
        #expect(error?.line == 3)
        #expect(error.map { "\($0)".contains(line) } == false)
    }
}

import Glibc
import SmartCard
import TestSupport
import Testing

/// Inputs that make work of one kind over and over: eight times as much of them takes some eight times as long, and not
/// sixty-four times.  What counts is the time of the processor, which a busy machine does not stretch.
@Suite(.computing, .serialized)
struct GrowthTests {
    /// Rows: what is fuzzed, how the input begins, what follows again and again, how often.
    private static let inputs: [(target: String, start: String, part: String, count: Int)] = [
        ("import", "ledger\n", "=> 00A40400\n", 400), ("import", "scriptor\n", "> 00 A4 04 00\n", 400),
        ("import", "pcscd\n", "00000001 APDU: 00 A4 04 00 \n", 400),
        ("trace", "apdu-trace 1\n", "0.000000000 reset\n", 150),
        ("trace", "apdu-trace 1\n", "0.000000000 connect T=1 3B80800101\n", 100),
        ("redaction", knownNumbers, "476173900101001^4761739001010010^", 220),
        ("redaction", knownNumbers, "4761739001010010=", 400),
        ("redaction", knownDocument, "L898902C36", 400), ("redaction", knownDocument, "L8 ", 400),
    ]

    /// The published test number 4761739001010010 and nine more lengths and numbers, in records; then a note begins.
    private static let knownNumbers: String = {
        let records = (0..<10).map { index in
            "0.000000000 > apdu 00B2010C00\n0.000000000 < apdu 700A5A0847617390010100\(10 + index)9000\n"
        }
        return "apdu-trace 1\n" + records.joined() + "0.000000000 note \""
    }()

    /// The zone of ICAO 9303-4, appendix B, in the clear; then a note begins.  // TEST
    private static let knownDocument: String = {
        let zone = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<L898902C36UTO7408122F1204159ZE184226B<<<<<10"
        return "apdu-trace 1\n0.000000000 > apdu 00B0810000\n0.000000000 < apdu 615B5F1F58\(Array(zone.utf8).hex)9000\n"
            + "0.000000000 note \""
    }()

    @Test(
        "keep hostile inputs from taking more time than their length is worth", arguments: Tier.few(inputs.indices, 3))
    func growth(_ index: Int) throws {
        let (target, start, part, count) = Self.inputs[index]
        func time(_ count: Int) throws -> Double {
            let end = target == "redaction" ? "\"\n" : ""
            let input = Array((start + String(repeating: part, count: count) + end).utf8)
            let before = Self.processorTime
            switch target {
            case "import": try TraceFuzzTargets.imported(input)
            case "trace": try TraceFuzzTargets.trace(input)
            default: try TraceFuzzTargets.redaction(input)
            }
            return Self.processorTime - before
        }
        _ = try time(1)
        let (short, long) = (try time(count), try time(8 * count))
        #expect(long < 24 * short, "\(short) s and \(long) s")
    }

    /// Of this thread, in seconds.
    private static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

import Foundation
import TestSupport
import Testing

/// A card is typed whose number and codes are nobody else's, and then looked for wherever they must not be.
@Suite(
    .computing, .timeLimit(.minutes(5)),
    .unsanitized(by: .address, .thread, because: "the heap is another, which is not wiped as it is freed"))
struct CheckoutTaintTests {
    /// TEST: what is in the memory of the process, so that looking there can find something.
    private static let control = "7305816294015837"
    /// TEST: of a range that no issuer has, with a valid check digit.
    private static let number = "4999998213746506"
    /// TEST
    private static let (securityCode, oneTimeCode) = ("795", "830619")

    @Test(
        "D5 nothing of a card is in what was told or in the process's memory", arguments: ["submit", "cancel", "idle"])
    func leavesNothing(_ end: String) async throws {
        let program = try Program(
            [Program.built("tainted-checkout"), end, Self.control],
            input: "\(Self.number)\n\(Self.securityCode)\n\(Self.oneTimeCode)\n")
        try await program.wait(for: "the end") { $0.output.contains("done\n") || $0.error.contains("rror:") }
        let told = program.output + program.error
        #expect(told.contains("done\n") && told.contains("499999******6506"), "\(told.suffix(2000))")
        #expect(told.contains("result: success") == (end == "submit"))
        // The number in its forms, and the codes as nothing else writes them.
        let forms =
            Taint.forms(of: Self.number) + Taint.forms(of: #""cvv":"\#(Self.securityCode)""#)
            + [Taint.Form(name: "the one-time code", bytes: Array(Self.oneTimeCode.utf8))]
        #expect(Taint.found(forms, in: Data(told.utf8)) == [])
        let memory = try Taint.memory(of: program.pid)
        for part in memory { #expect(Taint.found(forms, in: part.bytes) == [], "\(part.name)") }
        let control = Set(memory.flatMap { Taint.found(Taint.forms(of: Self.control), in: $0.bytes) })
        #expect(control.contains("\(Self.control) packed as it is"), "\(control)")
    }
}

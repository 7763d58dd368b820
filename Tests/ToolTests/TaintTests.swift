import Foundation
import SmartCardSimulator
import TestSupport
import Testing

/// Every tool with a card that has a unique number, name, track and PIN.  The tests search for these
/// in the tools' output and in the files that they leave.
@Suite(.timeLimit(.minutes(10))) struct ToolTaintTests {
    /// One run of a tool.
    struct Run: Sendable, CustomTestStringConvertible {
        let tool: String
        /// `CARD` is the marked card, `IN` a folder with `clear.apdu` and what is made of it, `OUT` an empty one.
        let arguments: String
        var input = ""
        /// The option or the purpose by which it shows card data, as its help says; nil: it shows none.
        var shows: String?
        /// What its files have, by the same.
        var keeps: String?
        /// A part of what it prints, or of what it leaves, which shows that it has done its part.
        let sign: String

        var testDescription: String { "\(tool) \(arguments)" + (shows.map { " (shows: \($0))" } ?? "") }
    }

    private static let masked = "499999******6504"
    /// VERIFY with the PIN (EMV Book 3, 6.5.12): format, length, digits, filling.  TEST
    private static let verify = "00200080082C839274650183FF"
    /// GET PROCESSING OPTIONS with what the card's PDOL asks for.
    private static let processing =
        "80A80000238321" + "3680C000" + "000000001234" + "000000000000" + "0276" + "0000000000" + "0978" + "261122"
        + "00"
        + "11223344" + "00"
    private static let select = "00A4040007A000000003101000"
    /// The number, the track and the name, as a card has them.  TEST
    private static let record =
        "701B5A0849999982137465045F200E4D41524B45442F4D414C4C4F5259"

    static let runs: [Run] = [
        Run(tool: "reader-probe", arguments: "--card CARD", sign: masked),
        Run(tool: "reader-probe", arguments: "list --card CARD", sign: "ACR122U"),
        Run(tool: "reader-probe", arguments: "card --card CARD", sign: "VISA CREDIT"),
        Run(tool: "reader-probe", arguments: "emv --card CARD", sign: masked),
        Run(tool: "reader-probe", arguments: "emv --card CARD --json --verbose", sign: masked),
        Run(
            tool: "reader-probe", arguments: "emv --card CARD --reveal", shows: "--reveal",
            sign: Taint.accountNumber),
        Run(tool: "reader-probe", arguments: "pay --card CARD --amount 12.34 --verbose", sign: "online request"),
        Run(tool: "reader-probe", arguments: "pay --card CARD --amount 12.34 --json", sign: "onlineRequest"),
        Run(
            tool: "reader-probe", arguments: "pay --card CARD --amount 12.34 --detect-collisions --verbose",
            sign: "online request"),
        Run(tool: "reader-probe", arguments: "apdu --card CARD \(select) \(processing) --verbose", sign: "499999"),
        Run(tool: "reader-probe", arguments: "apdu --card CARD --json \(select) \(processing)", sign: "499999"),
        Run(
            tool: "reader-probe", arguments: "apdu --card CARD \(select) \(processing) --reveal", shows: "--reveal",
            sign: Taint.accountNumber),
        Run(tool: "reader-probe", arguments: "apdu --card CARD \(verify) --verbose", sign: "> 0020008008****"),
        Run(tool: "reader-probe", arguments: "apdu --card CARD \(verify) --json", sign: "0020008008****"),
        Run(tool: "reader-probe", arguments: "apdu --card CARD \(verify)F", sign: "argument 1 is not a command APDU"),
        Run(
            tool: "reader-probe", arguments: "apdu --card CARD \(verify) --reveal", shows: "--reveal",
            sign: "0020008008"),
        Run(tool: "reader-probe", arguments: "decode", input: record, sign: masked),
        Run(tool: "reader-probe", arguments: "decode --json", input: record, sign: masked),
        Run(
            tool: "reader-probe", arguments: "decode --reveal", input: record, shows: "--reveal", sign: "MARKED/MALLORY"
        ),

        Run(tool: "apdu-trace", arguments: "record --card CARD -o OUT/new.apdu", sign: "apdu-trace 1"),
        Run(tool: "apdu-trace", arguments: "record --card CARD -o -", sign: "apdu-trace 1"),
        Run(
            tool: "apdu-trace", arguments: "record --clear --card CARD -o OUT/new.apdu", keeps: "--clear", sign: "clear"
        ),
        Run(tool: "apdu-trace", arguments: "record --clear --card CARD -o -", shows: "--clear", sign: "apdu-trace 1"),
        Run(
            tool: "apdu-trace", arguments: "pay --card CARD --amount 12.34 -o OUT/new.apdu", sign: "online request"),
        Run(
            tool: "apdu-trace", arguments: "pay --clear --card CARD --amount 12.34 -o OUT/new.apdu", keeps: "--clear",
            sign: "online request"),
        Run(tool: "apdu-trace", arguments: "show --no-pager IN/clear.apdu", sign: masked),
        Run(tool: "apdu-trace", arguments: "show --json IN/clear.apdu", sign: masked),
        Run(
            tool: "apdu-trace", arguments: "show --reveal --no-pager IN/clear.apdu", shows: "--reveal",
            sign: "READ RECORD"),
        Run(tool: "apdu-trace", arguments: "verify IN/clear.apdu", sign: "account number"),
        Run(tool: "apdu-trace", arguments: "verify --json IN/clear.apdu", sign: "account number"),
        Run(tool: "apdu-trace", arguments: "redact IN/clear.apdu -o OUT/new.apdu", sign: "taken out: "),
        Run(tool: "apdu-trace", arguments: "redact --reissue IN/clear.apdu -o OUT/new.apdu", sign: "taken out: "),
        Run(tool: "apdu-trace", arguments: "redact --cryptograms IN/clear.apdu -o OUT/new.apdu", sign: "taken out: "),
        Run(tool: "apdu-trace", arguments: "diff IN/clear.apdu IN/redacted.apdu", sign: "READ RECORD"),
        Run(tool: "apdu-trace", arguments: "diff --json IN/clear.apdu IN/redacted.apdu", sign: "{"),
        Run(tool: "apdu-trace", arguments: "stats IN/clear.apdu", sign: "READ RECORD"),
        Run(tool: "apdu-trace", arguments: "stats --json IN/clear.apdu", sign: "count"),
        Run(tool: "apdu-trace", arguments: "plot IN/clear.apdu -o OUT/new.svg", sign: "<svg"),
        Run(tool: "apdu-trace", arguments: "replay IN/clear.apdu --amount 12.34", sign: "exchanges"),
        Run(tool: "apdu-trace", arguments: "replay IN/clear.apdu --amount 0.99 --exact", sign: "recorded"),
        Run(tool: "apdu-trace", arguments: "replay IN", sign: "trace"),
        Run(tool: "apdu-trace", arguments: "convert IN/redacted.apdu -o OUT/new.scriptor --to scriptor", sign: "00"),
        Run(
            tool: "apdu-trace", arguments: "convert IN/clear.apdu -o OUT/new.scriptor --to scriptor", sign: "80 A8"),
        Run(
            tool: "apdu-trace", arguments: "convert IN/clear.apdu -o OUT/new.apdu", keeps: "card data stays as it is",
            sign: "apdu-trace 1"),
        Run(tool: "apdu-trace", arguments: "card IN/redacted.apdu -o OUT/new.card", sign: "card emv"),
        Run(tool: "apdu-trace", arguments: "show --no-pager IN/pin.apdu", sign: "VERIFY"),
        Run(tool: "apdu-trace", arguments: "show --json IN/pin.apdu", sign: "VERIFY"),
        Run(tool: "apdu-trace", arguments: "redact IN/pin.apdu -o OUT/new.apdu", sign: "pin"),
        Run(tool: "apdu-trace", arguments: "diff IN/pin.apdu IN/clear.apdu", sign: "VERIFY"),
        Run(tool: "apdu-trace", arguments: "replay IN/pin.apdu --amount 12.34", sign: "recorded"),

        Run(tool: "virtual-reader", arguments: "--list-cards", sign: "visa"),
        Run(tool: "virtual-reader", arguments: "--card IN/broken.card -- true", sign: "broken.card"),
    ]

    /// Those that need a pcscd of their own.
    static let serviceRuns: [Run] = [
        Run(tool: "virtual-reader", arguments: "--card CARD -- BUILT/first-program", sign: "ATR"),
        Run(tool: "virtual-reader", arguments: "--card CARD -- BUILT/reader-probe emv", sign: masked),
        Run(
            tool: "virtual-reader",
            arguments: "--card CARD -- BUILT/apdu-trace record -o OUT/new.apdu -- BUILT/reader-probe emv",
            sign: masked),
        Run(tool: "virtual-reader", arguments: "--card CARD -- BUILT/kiosk --reader 1.00", sign: "Approved"),
    ]

    @Test("its output and files contain no card data, unless that was requested", arguments: runs)
    func leavesNothing(_ run: Run) async throws { try await check(run) }

    @Test(
        "its output and files contain no card data with the smart card service either",
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"), arguments: serviceRuns)
    func leavesNothingThroughService(_ run: Run) async throws { try await check(run) }

    @Test(
        "a payment service that opens card data neither prints nor keeps it",
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"))
    func sandbox() async throws {
        let folders = try Folders()
        let sandbox = try await RunningSandbox("--card-data-key", "\(folders.output.path)/key")
        let outcome = try await Program.run(
            [
                Program.built("virtual-reader"), "--card", folders.card, "--", Program.built("kiosk"), "--reader",
                "--service", sandbox.address, "1.00",
            ], environment: folders.environment)
        #expect(outcome.output.contains("Approved"), "\(outcome)")
        let payments = try await sandbox.payments()
        #expect(payments.map { $0["card"] as? String } == [Self.masked])
        let texts = [outcome.output, outcome.error, sandbox.output, "\(payments)"]
        for text in texts { #expect(Taint.found(in: Data(text.utf8)) == [], "\(text)") }
        for file in Taint.files(below: folders.output) {
            #expect(Taint.found(in: try Data(contentsOf: file)) == [], "\(file)")
        }
    }

    @Test("the search finds every form of the data")
    func forms() {
        let number = Taint.accountNumber
        let packed = stride(from: 0, to: 16, by: 2).compactMap { UInt8(number.dropFirst($0).prefix(2), radix: 16) }
        let shifted =
            [UInt8(0x04)]
            + stride(from: 1, to: 15, by: 2).compactMap {
                UInt8(number.dropFirst($0).prefix(2), radix: 16)
            }
        for text in [
            number, "49 99 99 82 13 74 65 04", "\(packed)", Data([0x5A] + packed).base64EncodedString(),
            Data([0x5A, 0x08] + packed).base64EncodedString(), Data([0x57, 0x11, 0] + packed).base64EncodedString(),
            "34 39 39 39 39 39 38 32 31 33 37 34 36 35 30 34", Data("x\(Taint.name)".utf8).base64EncodedString(),
            "\(Array(Taint.name.utf8))", "4d41524b45442f4d414c4c4f5259",
        ] {
            #expect(!Taint.found(in: Data(text.utf8)).isEmpty, "\(text)")
        }
        #expect(!Taint.found(in: Data(packed)).isEmpty && !Taint.found(in: Data(shifted)).isEmpty)
        #expect(!Taint.found(in: Data(number.utf16.flatMap { [0, UInt8($0)] })).isEmpty)
        #expect(Taint.found(in: Data("499999******6504".utf8)).isEmpty)
    }

    /// Where tools work, gone with the value.
    private final class Folders: Sendable {
        // A short name: below it umockdev makes a socket, whose path may have 107 bytes.
        private let root = FileManager.default.temporaryDirectory.appending(
            path: "taint-\(UUID().uuidString.prefix(8))")
        /// What tools are given, and what they may write to.
        var input: URL { root.appending(path: "in") }
        var output: URL { root.appending(path: "out") }
        var card: String { input.appending(path: "marked.card").path }
        var environment: [String: String] {
            [
                "HOME": output.path, "TMPDIR": output.path, "XDG_STATE_HOME": output.path, "STATE_DIRECTORY": "",
                "XDG_CACHE_HOME": output.path,
            ]
        }

        init() throws {
            for folder in [input, output] {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            }
            let visa = try #require(VirtualCards.all.first { $0.name == "visa" }).text
            try Taint.marking(visa).write(toFile: card, atomically: true, encoding: .utf8)
            // A line that is none, behind everything that is marked.
            try (Taint.marking(visa) + "\n5A \(Taint.accountNumber) \(Taint.name)\n")
                .write(to: input.appending(path: "broken.card"), atomically: true, encoding: .utf8)
        }

        deinit { try? FileManager.default.removeItem(at: root) }

        /// A recorded payment, what redaction makes of it, and one with a PIN.
        func makeTraces() async throws {
            let clear = "\(input.path)/clear.apdu"
            let tool = Program.built("apdu-trace")
            _ = try await Program.run([tool, "pay", "--card", card, "--clear", "--amount", "12.34", "-o", clear])
            let text = try String(contentsOfFile: clear, encoding: .utf8)
            #expect(!Taint.found(in: Data(text.utf8)).isEmpty)
            _ = try await Program.run([tool, "redact", clear, "-o", "\(input.path)/redacted.apdu"])
            let pin = text.replacing(
                /(?<time>[0-9.]+) disconnect/,
                with: { "\($0.time) > apdu \(ToolTaintTests.verify)\n\($0.time) < apdu 9000\n\($0.0)" })
            #expect(pin.contains("2C839274650183FF"))
            try pin.write(toFile: "\(input.path)/pin.apdu", atomically: true, encoding: .utf8)
        }
    }

    private func check(_ run: Run) async throws {
        let folders = try Folders()
        if run.arguments.contains("IN") { try await folders.makeTraces() }
        let arguments = run.arguments.split(separator: " ").map { word in
            String(word).replacing("CARD", with: folders.card).replacing(
                "IN", with: folders.input.path, maxReplacements: 1
            )
            .replacing("OUT", with: folders.output.path)
            .replacing("BUILT/", with: Program.built(""))
        }
        let outcome = try await Program.run(
            [Program.built(run.tool)] + arguments, environment: folders.environment, input: run.input)
        let printed = Taint.found(in: Data((outcome.output + outcome.error).utf8))
        // What shows card data must, or there is nothing to find where it must not.
        #expect(printed.isEmpty == (run.shows == nil), "\(printed) \(outcome)")
        var contents = Data((outcome.output + outcome.error).utf8)
        var kept: [String] = []
        for file in Taint.files(below: folders.output) {
            let data = try Data(contentsOf: file)
            contents.append(data)
            kept += Taint.found(in: data).map { "\(file.lastPathComponent): \($0)" }
        }
        #expect(kept.isEmpty == (run.keeps == nil), "\(kept) \(outcome)")
        #expect(contents.range(of: Data(run.sign.utf8)) != nil, "\(run.sign) is missing: \(outcome)")
    }
}

import SmartCard
import Testing

@testable import SmartCardSimulator

/// An exchange with a real reader, as somebody has published it.
struct ReaderCapture: Sendable, CustomTestStringConvertible {
    /// The report.
    let source: String
    /// The software reader that is to answer as that one did.
    let firmware: Firmware
    /// On the reader, if there is one.
    var card: Card?
    /// Faults that the real one had.
    var faults: [SoftwareReaderFault] = []
    /// Messages that came before, whose answers are not compared.
    var before: [String] = []
    /// A CCID message, and the messages that came back.
    let command: String
    let answers: [String]
    /// Where ours answers otherwise: what, and why.
    var difference: (answers: [String], reason: String)?

    enum Firmware: String, Sendable {
        case firmware207 = "2.07", firmware214 = "2.14", firmware215 = "2.15", firmware216 = "2.16", touchatag =
            "Touchatag"

        var profile: ACR122UProfile {
            var profile = ACR122UProfile(version: rawValue) ?? .firmware214
            if self == .touchatag { profile.hasEscape = false }
            return profile
        }
    }

    enum Card: Sendable {
        /// MIFARE Classic 1K whose reader gave SENS_RES as 04 00.
        case classic
        /// SAK 28: a MIFARE Classic that speaks ISO-DEP too.
        case sak28

        var card: any VirtualCard {
            switch self {
            case .classic: TableCard(.typeA(uid: bytes("82 AC B9 5D"), atqa: [0x04, 0x00], sak: 0x08, ats: nil))
            case .sak28:
                TableCard(
                    .typeA(uid: bytes("A0 D9 89 78"), atqa: [0x00, 0x04], sak: 0x28, ats: bytes("05 78 80 70 02")))
            }
        }
    }

    var testDescription: String { "\(source), \(firmware.rawValue): \(command)" }

    private static let version = "6F 05000000 00 00 00 0000  FF 00 48 00 00"
    /// A card APDU with no card to take it: it times out, and bError says so from then on.
    private static let timeout = "6F 05000000 00 00 00 0000  00 84 00 00 08"
    private static let listTypeA = "6F 09000000 00 00 00 0000  FF 00 00 00 04 D4 4A 01 00"

    /// Every exchange of an ACR122U that was found quoted byte for byte.
    static let all: [ReaderCapture] = [
        // MARK: No card
        ReaderCapture(
            source: "nfcpy#154", firmware: .firmware216, command: version,
            answers: ["80 0A 00 00 00 00 00 02 81 00 41 43 52 31 32 32 55 32 31 36"]),
        ReaderCapture(
            source: "nfcpy#154", firmware: .firmware216, command: "62 00000000 00 00 00 0000",
            answers: ["80 02 00 00 00 00 00 00 81 00 3B 00"]),
        ReaderCapture(
            source: "nfcpy#154", firmware: .firmware216, command: "6F 05000000 00 00 00 0000  FF 00 51 7F 00",
            answers: ["80 02 00 00 00 00 00 02 81 00 90 7F"]),
        ReaderCapture(
            source: "nfcpy#105", firmware: .firmware215, before: [timeout],
            command: "6F 05000000 00 00 00 0000  FF 00 51 7F 00", answers: ["80 01 00 00 00 00 00 02 FE 00 7F"]),
        ReaderCapture(
            source: "nfcpy#154", firmware: .firmware216,
            command: "6F 09000000 00 00 00 0000  FF 00 40 0E 04 00 00 00 00",
            answers: ["80 02 00 00 00 00 00 02 81 00 90 02"]),
        ReaderCapture(
            source: "nfcpy#105", firmware: .firmware215, before: [timeout],
            command: "6F 09000000 00 00 00 0000  FF 00 40 0E 04 00 00 00 00",
            answers: ["80 02 00 00 00 00 00 02 FE 00 90 02"]),
        // In the comments of libnfc's acr122_usb.c, of a firmware that is not told.
        ReaderCapture(
            source: "libnfc, acr122_usb.c", firmware: .firmware216,
            command: "6B 07000000 00 0A 00 0000  FF 00 00 00 02 D4 02",
            answers: ["83 08 00 00 00 00 0A 02 81 00 D5 03 32 01 04 07 90 00"],
            difference: (
                ["83 08 00 00 00 00 0A 02 81 00 D5 03 32 01 06 07 90 00"],
                "the chip behind it was of revision 4, as in older readers; that of our 2.16 is of revision 6"
            )),
        ReaderCapture(
            source: "libnfc#666", firmware: .firmware214,
            command: "6F 0B000000 00 00 00 0000  FF 00 00 00 06 D4 32 05 00 01 02",
            answers: ["80 04 00 00 00 00 00 00 81 00 D5 33 90 00"]),
        ReaderCapture(
            source: "libnfc#666", firmware: .firmware214, command: listTypeA,
            answers: ["80 05 00 00 00 00 00 00 81 00 D5 4B 00 90 00"]),
        ReaderCapture(
            source: "chrome-nfc#14, status word alone", firmware: .firmware207,
            command: "6F 05000000 00 00 00 0000  FF 00 52 00 00", answers: ["80 02 00 00 00 00 00 00 81 00 63 00"]),

        // MARK: With a card
        ReaderCapture(
            source: "libnfc#476", firmware: .firmware214, card: .classic, before: [timeout], command: listTypeA,
            answers: ["80 0E 00 00 00 00 00 00 FE 00 D5 4B 01 01 04 00 08 04 82 AC B9 5D 90 00"]),
        ReaderCapture(
            source: "libnfc#476", firmware: .firmware214, card: .classic, before: [timeout, listTypeA],
            command: "6F 08000000 00 00 00 0000  FF 00 00 00 03 D4 44 00",
            answers: ["80 05 00 00 00 00 00 00 FE 00 D5 45 00 90 00"]),
        ReaderCapture(
            source: "libnfc#263", firmware: .firmware214, card: .sak28,
            before: ["6F 08000000 00 00 00 0000  FF 00 00 00 03 D4 12 04"], command: listTypeA,
            answers: ["80 0E 00 00 00 00 00 00 81 00 D5 4B 01 01 00 04 28 04 A0 D9 89 78 90 00"]),
        ReaderCapture(
            source: "libnfc#263", firmware: .firmware214, card: .sak28, before: [listTypeA],
            command: "6F 13000000 00 00 00 0000  FF 00 00 00 0E D4 40 01 00 A4 04 00 06 F7 52 46 54 41 01",
            answers: ["80 00 00 00 00 00 00 00 FE 00"]),

        // MARK: After an interrupted session: the first answer twice
        ReaderCapture(
            source: "nfcpy#167, nfcpy#200", firmware: .firmware216, faults: [SoftwareReaderFault(.staleFrame)],
            command: version,
            answers: [String](repeating: "80 0A 00 00 00 00 00 02 81 00 41 43 52 31 32 32 55 32 31 36", count: 2)),
        ReaderCapture(
            source: "nfcpy#167, nfcpy#200", firmware: .firmware216, faults: [SoftwareReaderFault(.staleFrame)],
            before: [version], command: "62 00000000 00 00 00 0000", answers: ["80 02 00 00 00 00 00 00 81 00 3B 00"]),

        // MARK: The Touchatag, which knows no Escape
        ReaderCapture(
            source: "libnfc#201", firmware: .touchatag, command: "6B 07000000 00 00 00 0000  FF 00 00 00 02 D4 02",
            answers: ["83 00 00 00 00 00 00 41 05 00"]),
        ReaderCapture(
            source: "libnfc#201, of a longer command", firmware: .touchatag,
            command: "6B 09000000 00 00 00 0000  FF 00 00 00 04 D4 4A 01 00",
            answers: ["83 00 00 00 00 00 00 41 07 00"],
            difference: (
                ["83 00 00 00 00 00 00 41 05 00"],
                "what the 7 depends on is not known: ours names the same byte for every length"
            )),
        ReaderCapture(
            source: "libnfc#201, the answer fetched", firmware: .touchatag,
            command: "6F 07000000 00 00 00 0000  FF 00 00 00 02 D4 02",
            answers: ["80 02 00 00 00 00 00 00 81 00 61 08"],
            difference: (
                ["80 08 00 00 00 00 00 00 81 00 D5 03 32 01 06 07 90 00"],
                "ours is an ACR122U without Escape: it does not have its answers fetched by FF C0"
            )),
    ]
}

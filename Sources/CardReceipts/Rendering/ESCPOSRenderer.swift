import Foundation

/// A renderer to ESC/POS, the command language of Epson's and most other receipt printers.
///
/// Text cannot command the printer: only characters of the code pages reach the output.
public struct ESCPOSRenderer: Hashable, Sendable {
    public enum Cut: Hashable, Sendable {
        /// Cuts at the cutter and leaves a bridge.
        case partial
        /// Feeds until the last line is out of the printer, and cuts completely.
        case full
    }

    public enum Drawer: Hashable, Sendable {
        /// The pin of the drawer connector.
        case pin2, pin5
    }

    public let columns: Int
    /// The printer's code pages, in the order in which they are tried.
    public let codePages: [CodePage]
    public let cut: Cut?
    /// The drawer to open before printing.
    public let drawer: Drawer?

    /// The code pages of Epson's printers.
    public static let epson: [CodePage] = [.pc858, .windows1252, .pc852, .pc866, .greek]

    public init(
        columns: Int = 48, codePages: [CodePage] = epson,
        cut: Cut? = .partial, drawer: Drawer? = nil
    ) {
        self.columns = TextRenderer(columns: columns).columns
        (self.codePages, self.cut, self.drawer) = (codePages, cut, drawer)
    }

    public func render(_ document: ReceiptDocument) -> [UInt8] {
        commands(document).flatMap(\.bytes)
    }

    /// Returns the commands that print the document.
    func commands(_ document: ReceiptDocument) -> [ESCPOSCommand] {
        var encoder = ESCPOSEncoder(codePages: codePages)
        var commands: [ESCPOSCommand] = [.initialize]
        if let drawer { commands.append(.openDrawer(connector: drawer == .pin2 ? 0 : 1)) }
        let renderer = TextRenderer(columns: columns)
        for line in document.lines {
            if case .code(let text) = line, let dots = ESCPOSCommand.moduleDots(of: text, columns: columns) {
                commands += [.align(.center), .code(text, moduleDots: dots), .align(.left)]
                continue
            }
            let style = Style(line)
            commands += style.begin
            for text in renderer.lines(line) { commands += encoder.encode(text) + [.text([0x0A])] }
            commands += style.end
        }
        switch cut {
        case .partial: commands.append(.cutAtCutter)
        case .full: commands += [.feed(6), .cut]
        case nil: commands.append(.feed(6))
        }
        return commands
    }

    private struct Style {
        let isBold: Bool
        let isTall: Bool

        init(_ line: ReceiptDocument.Line) {
            switch line {
            case .merchant, .amount: (isBold, isTall) = (true, true)
            case .heading: (isBold, isTall) = (true, false)
            default: (isBold, isTall) = (false, false)
            }
        }

        var begin: [ESCPOSCommand] { (isBold ? [.bold(true)] : []) + (isTall ? [.size(tall: true)] : []) }
        var end: [ESCPOSCommand] { (isTall ? [.size(tall: false)] : []) + (isBold ? [.bold(false)] : []) }
    }
}

/// An ESC/POS command.
enum ESCPOSCommand: Hashable {
    enum Alignment: UInt8 { case left, center, right }

    case initialize
    case selectCodePage(UInt8)
    /// Text in the selected code page.
    case text([UInt8])
    case align(Alignment)
    case bold(Bool)
    case size(tall: Bool)
    case feed(UInt8)
    case cut
    /// Feeds to the cutter, cuts, and leaves a bridge.
    case cutAtCutter
    /// Opens the cash drawer with a pulse of 100 ms.
    case openDrawer(connector: UInt8)
    /// A QR code, model 2, error correction M, with modules of the given number of dots.
    case code(String, moduleDots: UInt8)
    /// Requests a status in real time: the printer answers at once, whatever it does.
    case transmitStatus(UInt8)
    /// Requests the paper sensor's status.  The answer follows after everything before it is printed.
    case transmitPaperSensor

    /// The capacities of QR codes of versions 1 to 40 with error correction M, in bytes (ISO/IEC 18004, table 7).
    private static let codeCapacities = [
        14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331, 362, 412, 450, 504, 560, 624, 666, 711, 779, 857,
        911,
        997, 1059, 1125, 1190, 1264, 1370, 1452, 1538, 1628, 1722, 1809, 1911, 1989, 2099, 2213, 2331,
    ]

    /// Returns the size of a QR code's modules on paper of the given number of columns, 12 dots each: at most 6 dots.
    ///
    /// - Returns: nil if the code does not fit with modules of 3 dots, the smallest that a phone can read.
    static func moduleDots(of text: String, columns: Int) -> UInt8? {
        guard let version = codeCapacities.firstIndex(where: { $0 >= text.utf8.count }), !text.isEmpty else {
            return nil
        }
        // 21 modules, four more for each version, and a quiet zone of four on each side (ISO/IEC 18004, 5.3.1 and
        // 5.3.8).
        let dots = min(6, columns * 12 / (21 + 4 * version + 8))
        return dots < 3 ? nil : UInt8(dots)
    }

    var bytes: [UInt8] {
        switch self {
        case .initialize: [0x1B, 0x40]  // ESC @
        case .selectCodePage(let number): [0x1B, 0x74, number]  // ESC t
        case .text(let bytes): bytes
        case .align(let alignment): [0x1B, 0x61, alignment.rawValue]  // ESC a
        case .bold(let isBold): [0x1B, 0x45, isBold ? 1 : 0]  // ESC E
        case .size(let isTall): [0x1D, 0x21, isTall ? 0x01 : 0x00]  // GS !
        case .feed(let lines): [0x1B, 0x64, lines]  // ESC d
        case .cut: [0x1D, 0x56, 0x00]  // GS V
        case .cutAtCutter: [0x1D, 0x56, 66, 0]  // GS V
        case .openDrawer(let connector): [0x1B, 0x70, connector, 50, 50]  // ESC p, in 2 ms
        case .code(let text, let dots):
            Self.code(65, [50, 0]) + Self.code(67, [dots]) + Self.code(69, [49])
                + Self.code(80, [48] + Array(text.utf8)) + Self.code(81, [48])
        case .transmitStatus(let number): [0x10, 0x04, number]  // DLE EOT
        case .transmitPaperSensor: [0x1D, 0x72, 1]  // GS r
        }
    }

    /// Returns a GS ( k command for QR codes: the length of what follows it, low byte first.
    private static func code(_ function: UInt8, _ parameters: [UInt8]) -> [UInt8] {
        let count = parameters.count + 2
        return [0x1D, 0x28, 0x6B, UInt8(count & 0xFF), UInt8(count >> 8 & 0xFF), 49, function] + parameters
    }
}

/// An encoder of text to the code pages of a printer.
struct ESCPOSEncoder {
    let codePages: [CodePage]
    private var current: CodePage?

    init(codePages: [CodePage]) { self.codePages = codePages }

    /// Encodes text.  A character without a byte in any code page loses its accent, or else becomes `?` in its width.
    mutating func encode(_ text: String) -> [ESCPOSCommand] {
        var commands: [ESCPOSCommand] = []
        var run: [UInt8] = []
        for character in text {
            guard let (bytes, page) = encode(character) else {
                run += [UInt8](repeating: UInt8(ascii: "?"), count: character.columns)
                continue
            }
            if let page, page != current {
                if !run.isEmpty { commands.append(.text(run)) }
                commands.append(.selectCodePage(page.number))
                (current, run) = (page, [])
            }
            run += bytes
        }
        return run.isEmpty ? commands : commands + [.text(run)]
    }

    /// Returns the bytes of a character and their code page; the code page is nil for ASCII, which all code pages
    /// contain.
    private func encode(_ character: Character) -> (bytes: [UInt8], page: CodePage?)? {
        if character == "\u{A0}" { return ([0x20], nil) }
        let composed = String(character).precomposedStringWithCanonicalMapping.unicodeScalars
        if composed.count == 1, let scalar = composed.first, let encoded = encode(scalar) { return encoded }
        let base = String(character).decomposedStringWithCanonicalMapping.unicodeScalars
        guard character.columns == 1, base.count > 1, let first = base.first else { return nil }
        return encode(first)
    }

    private func encode(_ scalar: Unicode.Scalar) -> (bytes: [UInt8], page: CodePage?)? {
        if (0x20...0x7E).contains(scalar.value) { return ([UInt8(scalar.value)], nil) }
        let pages = (current.map { [$0] } ?? []) + codePages
        return pages.lazy.compactMap { page in page.byte(scalar).map { ([$0], page) } }.first
    }
}

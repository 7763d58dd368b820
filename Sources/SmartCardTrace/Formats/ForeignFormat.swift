/// A format of another program for the traffic between a program, a reader and a card.
public struct ForeignFormat: Sendable {
    /// The name on a command line.
    public let name: String
    /// The description for a person.
    public let title: String
    /// The file name extension without the period; nil if the format has none.
    public let fileExtension: String?
    /// True if a file of this format consists of lines for people.
    public let isText: Bool
    /// Returns true if the first bytes of a file, ``recognizedCount`` of them or the whole file, are in this format.
    let recognizes: @Sendable (_ start: [UInt8]) -> Bool
    let importer: (@Sendable (_ source: @escaping TraceSource) -> any FormatImporter)?
    let exporter: (@Sendable (_ sink: @escaping TraceSink) -> any FormatExporter)?

    init(
        _ name: String, _ title: String, fileExtension: String? = nil, isText: Bool = true,
        recognizes: @escaping @Sendable ([UInt8]) -> Bool = { _ in false },
        importer: (@Sendable (@escaping TraceSource) -> any FormatImporter)? = nil,
        exporter: (@Sendable (@escaping TraceSink) -> any FormatExporter)? = nil
    ) {
        self.name = name
        self.title = title
        self.fileExtension = fileExtension
        self.isText = isText
        self.recognizes = recognizes
        self.importer = importer
        self.exporter = exporter
    }

    /// True if ``TraceImport`` reads it.
    public var canImport: Bool { importer != nil }
    /// True if ``TraceExport`` writes it.
    public var canExport: Bool { exporter != nil }

    /// The number of bytes at the start of a file that identify its format.
    static let recognizedCount = 16_384

    /// All formats; of two that recognize the same file the first reads it.
    public static let all: [ForeignFormat] = [
        .apdu,
        // Captures, which begin with bytes that no log begins with.
        .capture,
        .iso14443,
        .usbmon,
        // Logs, from those whose lines are like no others' to those that may be taken for another.
        .pcscSpy,
        .libccid,
        .pcscd,
        .opensc,
        .libnfc,
        .nfcpy,
        .apduPlay,
        .scriptor,
        .ledger,
        // Records of numbers, which say little of themselves.
        .proxmark,
        // Only written.
        .cardpeek,
    ]

    /// The format of this name.
    public init?(named name: String) {
        guard let format = Self.all.first(where: { $0.name == name }) else { return nil }
        self = format
    }

    /// Finds the format by the extension of a file name.
    public init?(path: String) {
        let parts = path.split(separator: "/").last?.split(separator: ".") ?? []
        guard parts.count > 1,
            let format = Self.all.first(where: { $0.canExport && $0.fileExtension == parts.last.map(String.init) })
        else { return nil }
        self = format
    }
}

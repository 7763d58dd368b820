import ArgumentParser
import EMVContactless
import Foundation
import SmartCard
import SmartCardTrace
import ToolReaders
import ToolSupport

struct RedactCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "redact", abstract: "Removes account numbers, tracks, names, PINs, keys and logs from a trace.",
        discussion: """
            Each account number becomes another with the same length, the same first digits and a correct check digit, \
            the same one everywhere. Certificates that reveal it become zeros, so offline data authentication of the \
            redacted trace fails, unless --reissue replaces them.
            """)

    @OptionGroup var trace: TraceArgument
    @OptionGroup var output: OutputFile

    @Option(
        help: .init(
            "32 digits; traces redacted with the same key have the same numbers. Default: a random one.",
            valueName: "hex"))
    var key: String?

    @Option(help: .init("The file that contains the key and nothing else: 32 digits, or 16 bytes.", valueName: "file"))
    var keyFile: String?

    @Flag(
        help: """
            Sign certificates and data anew, with keys of the same lengths of a test authority that every tool of this \
            package knows, where authentication succeeded before.
            """)
    var reissue = false

    @Option(
        help: .init(
            "With --reissue: the file for the authorities' public keys, for --ca-keys. Only required for unusual lengths.",
            valueName: "file"))
    var authorities: String?

    @Option(
        help: .init(
            "Certification authority keys that determine if authentication succeeded before.", valueName: "file"))
    var caKeys: String?

    @Flag(help: "Remove application cryptograms and issuer application data, too.")
    var cryptograms = false

    func run() async throws {
        guard reissue || authorities == nil && caKeys == nil else {
            throw ToolError.usage("--authorities and --ca-keys go with --reissue", "Add --reissue.")
        }
        let redaction = TraceRedaction(key: try secret(), includingCryptograms: cryptograms)
        let keys = reissue ? try PaymentOptions.keys(beside: caKeys) : nil
        let source = try RereadableTrace(trace.file)
        var secrets = try await source.secrets(holdingTransactions: reissue)
        var cuts: [Int] = []
        // The list of items to take out is at the beginning.
        try await source.forEachPiece(holdingTransactions: reissue) { piece in
            _ = redaction.redacted(piece, knowing: &secrets, isFirst: false)
            if piece.isCut, let line = piece.lines.last, cuts.count < 10 { cuts.append(line) }
        }
        if let authorities { try NewFile.check(authorities, replacing: output.force) }
        // Half a trace would be taken for a whole one.
        let file = try NewFile(output.output, replacing: output.force)
        var writer = try TraceWriter { try file.write($0) }
        try await write(source, to: &writer, redaction, &secrets, keys)
        try file.finish()
        let items = secrets.items.map(\.rawValue).sorted().joined(separator: ", ")
        for line in cuts where !reissue {
            Terminal.remark(
                "behind line \(line) too much belongs together; what stands on both sides was not looked at whole")
        }
        Terminal.remark("taken out: \(items.isEmpty ? "nothing, for there was nothing" : items)")
    }

    private func write(
        _ source: RereadableTrace, to writer: inout TraceWriter, _ redaction: TraceRedaction,
        _ secrets: inout TraceSecrets,
        _ keys: CAPublicKeys?
    ) async throws {
        var isFirst = true
        var keyFile = ""
        var isCut = false
        try await source.forEachPiece(holdingTransactions: reissue) { piece in
            var redacted = redaction.redacted(piece, knowing: &secrets, isFirst: isFirst)
            if let keys {
                let reissued = Reissue(redacted, of: piece.trace, keys: keys, hidesCryptograms: cryptograms)
                redacted = reissued.trace
                if !keyFile.contains(reissued.authorityFile) { keyFile += reissued.authorityFile }
                if piece.isCut || isCut {
                    let note = "certificates not reissued where a transaction is too long"
                    redacted.events.append(TraceEvent(at: redacted.events.last?.time ?? .zero, .note(note)))
                }
                isCut = piece.isCut
            }
            try redacted.write(to: &writer)
            isFirst = false
        }
        if let authorities { try NewFile.write(keyFile, to: authorities, replacing: output.force) }
    }

    /// Returns the secret that makes the numbers the same in each run; nil for a random key.
    private func secret() throws -> [UInt8]? {
        guard key == nil || keyFile == nil else {
            throw ToolError.usage("--key and --key-file exclude each other", "Name one of them.")
        }
        if let keyFile {
            guard let data = try FileHandle(forReadingAtPath: keyFile)?.read(upToCount: 64) else {
                throw ToolError.usage("\(keyFile) cannot be read", "Check that the file exists and is readable.")
            }
            let bytes = Array(data)
            if bytes.count == 16 { return bytes }
            let text = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
            guard let secret = try? [UInt8](hex: text), secret.count == 16 else {
                throw ToolError.usage(
                    "\(keyFile) holds neither 32 hexadecimal digits nor 16 bytes",
                    "For example: openssl rand -hex 16 > \(keyFile)")
            }
            return secret
        }
        guard let key else { return nil }
        guard let bytes = try? [UInt8](hex: key), bytes.count == 16 else {
            throw ToolError.usage(
                "--key is not 32 hexadecimal digits", "For example: --key $(openssl rand -hex 16)")
        }
        return bytes
    }
}

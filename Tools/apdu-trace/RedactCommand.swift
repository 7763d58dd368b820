import ArgumentParser
import EMVContactless
import Foundation
import SmartCard
import SmartCardTrace
import ToolReaders
import ToolSupport

struct RedactCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "redact", abstract: "Removes account numbers, tracks, names, PINs, keys and logs from a trace.",
        discussion: """
            Each account number becomes another with the same length, the same first digits and a correct check digit, \
            the same one everywhere. Certificates that reveal it become zeros, so offline data authentication of the \
            redacted trace fails, unless --reissue replaces them. Of a travel document, the holder's data, the face and the \
            keys are removed, and what is encrypted becomes zeros. So do passes that a phone's wallet hands over.
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

    func run() throws {
        guard reissue || authorities == nil && caKeys == nil else {
            throw ToolError.usage("--authorities and --ca-keys go with --reissue", "Add --reissue.")
        }
        let redaction = TraceRedaction(key: try secret(), includingCryptograms: cryptograms)
        let keys = reissue ? try PaymentOptions.keys(beside: caKeys) : nil
        let source = try RereadableTrace(trace.file)
        var work = FileRedaction(redaction)
        work.holdsTransactions = reissue
        let redacted = try work.redacted(source)
        if let authorities { try NewFile.check(authorities, replacing: output.force) }
        // Half a trace would be taken for a whole one.
        let file = try NewFile(output.output, replacing: output.force)
        var writer = try TraceWriter { try file.write($0) }
        if let keys {
            try reissue(redacted, of: source, items: work.items, to: &writer, keys)
        } else {
            var isFirst = true
            try redacted.eachPiece { piece in
                try (isFirst ? piece.trace.noting(work.items) : piece.trace).write(to: &writer)
                isFirst = false
            }
        }
        try file.finish()
        let items = work.items.map(\.rawValue).sorted().joined(separator: ", ")
        for line in work.cuts where !reissue {
            Terminal.remark(
                "behind line \(line) too many events belong together; data across this line was checked only in parts")
        }
        Terminal.remark("taken out: \(items.isEmpty ? "nothing, for there was nothing" : items)")
    }

    /// Signs the redacted trace anew, transaction by transaction of the original.
    private func reissue(
        _ redacted: RereadableTrace, of source: RereadableTrace, items: Set<TraceEvent.RedactedItem>,
        to writer: inout TraceWriter, _ keys: CAPublicKeys
    ) throws {
        var events = try redacted.reader()
        // Redaction adds the event that tells of it.
        var rest = try redacted.count() - source.count()
        var isFirst = true
        var keyFile = ""
        var isCut = false
        try source.eachPiece(holdingTransactions: true) { piece in
            var part = Trace()
            while part.events.count < piece.trace.events.count + rest, let event = try events.next() {
                part.events.append(event)
            }
            rest = 0
            let reissued = Reissue(
                isFirst ? part.noting(items) : part, of: piece.trace, keys: keys, hidesCryptograms: cryptograms)
            part = reissued.trace
            if !keyFile.contains(reissued.authorityFile) { keyFile += reissued.authorityFile }
            if piece.isCut || isCut {
                let note = "certificates not reissued where a transaction is too long"
                part.events.append(TraceEvent(at: part.events.last?.time ?? .zero, .note(note)))
            }
            isCut = piece.isCut
            try part.write(to: &writer)
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

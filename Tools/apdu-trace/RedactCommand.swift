import ArgumentParser
import SmartCard
import SmartCardTrace
import ToolSupport

struct RedactCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "redact", abstract: "Takes account numbers, tracks, names, PINs, keys and logs out of a trace.",
        discussion: """
            Each account number becomes another one of the same length, first four digits and a right check digit, the \
            same one wherever it stands. Certificates that hold it become zeros, so offline data authentication of the \
            redacted trace fails.
            """)

    @OptionGroup var trace: TraceArgument
    @OptionGroup var output: TraceOutput

    @Option(
        help: .init(
            "32 digits; traces redacted with the same key have the same numbers. Default: a random one.",
            valueName: "hex"))
    var key: String?

    @Flag(help: "Take out application cryptograms and issuer application data, too.")
    var cryptograms = false

    func run() throws {
        var secret: [UInt8]?
        if let key {
            guard let bytes = try? [UInt8](hex: key), bytes.count == 16 else {
                throw ToolError.usage(
                    "--key is not 32 hexadecimal digits", "For example: --key $(openssl rand -hex 16)")
            }
            secret = bytes
        }
        let redacted = TraceRedaction(key: secret, includingCryptograms: cryptograms).redacted(try trace.trace())
        var writer = try output.writer()
        try redacted.write(to: &writer)
    }
}

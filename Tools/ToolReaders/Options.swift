package import ArgumentParser
package import Logging
import SmartCard
import ToolSupport

package struct OutputOptions: ParsableArguments {
    @OptionGroup var format: JSONOption

    package var json: Bool { format.json }

    @Flag(
        help: """
            Show account numbers, tracks and names in full. By default, all but the first six and the last four digits \
            are masked.
            """)
    package var reveal = false

    package init() {}
}

/// The path of commands to the reader.
package enum BackendChoice: String, ExpressibleByArgument, CaseIterable {
    /// pcscd if it answers and has a reader, else USB.
    case auto
    case pcsc
    case usb
}

package struct ReaderOptions: ParsableArguments {
    @Option(
        help: """
            pcsc: through pcscd. usb: directly over USB; pcscd must not hold the reader. auto: pcscd if \
            it answers and has the reader, else USB.
            """)
    package var backend = BackendChoice.auto

    @Option(
        help: .init(
            """
            Use the PN532 board on this serial port, set to HSU: /dev/ttyUSB0. Boards are not searched for, because that would \
            write to any device connected there.
            """, valueName: "path"))
    package var device: String?

    @Option(name: .shortAndLong, help: .init("Use the reader whose name contains this.", valueName: "text"))
    package var reader: String?

    @Flag(help: "Use the built-in software reader, without hardware and without a service.")
    package var virtual = false

    @Option(
        help: .init(
            """
            Put a card on the software reader (implies --virtual): visa, mastercard, two-applications and others of \
            virtual-reader --list-cards, or a card file. Repeatable. Default: visa.
            """, valueName: "name|file"))
    package var card: [String] = []

    @Option(
        help: .init(
            "Wait at most this many seconds for a card. Default: no limit on a terminal, else 5.", valueName: "seconds")
    )
    package var timeout: Double?

    @Flag(name: .shortAndLong, help: "Write the APDU traffic to standard error, card data masked.")
    package var verbose = false

    package init() {}

    package func validate() throws {
        if let timeout, !(0...86_400).contains(timeout) {
            throw ValidationError("--timeout takes 0 to 86400 seconds")
        }
        if device != nil, backend != .auto || isVirtual {
            throw ValidationError("--device names the reader; it goes with neither --backend nor --virtual")
        }
    }

    package var isVirtual: Bool { virtual || !card.isEmpty }

    /// True if no reader option was given.
    package var areUnused: Bool {
        backend == .auto && device == nil && reader == nil && !isVirtual && timeout == nil && !verbose
    }

    /// The longest wait for a card; nil: no limit.
    package var patience: Duration? {
        timeout.map { .milliseconds(Int($0 * 1000)) } ?? (Terminal.errorIsTerminal ? nil : .seconds(5))
    }

    package var logger: Logger? {
        guard verbose else { return nil }
        var logger = Logger(label: Terminal.program) { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .trace
        return logger
    }
}

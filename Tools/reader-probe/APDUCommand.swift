import ArgumentParser
import SmartCard
import ToolReaders
import ToolSupport

struct APDUCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apdu", abstract: "Sends command APDUs, one after the other.",
        discussion: """
            Each HEX is one command: reader-probe apdu 00A404000E325041592E5359532E444446303100

            Commands that begin with FF 00 go to the reader itself and need no card: FF00480000 asks an ACR122U for its \
            firmware version.

            Without --reveal, account numbers, tracks and names in the responses are masked; so is a response that is \
            not BER-TLV where it may hold them, and command data that may be a PIN or a key.
            """)

    @Argument(help: "Command APDUs in hexadecimal; quote them to put spaces between the bytes.")
    var hex: [String]

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let commands = try zip(1..., hex).map { number, text in
            do {
                return try CommandAPDU([UInt8](hex: text))
            } catch {
                // The error does not repeat the text, which may be a PIN.
                throw ToolError.usage(
                    "argument \(number) is not a command APDU: \(error)",
                    "Each argument is one APDU; quote one with spaces: \"00 A4 04 00 00\".")
            }
        }
        if commands.allSatisfy(\.isForReader), let reader = try await readerOptions.readers().first {
            try await exchange(commands, with: reader.identity) { command in
                let answer = try await reader.transmitToReader(command.bytes)
                return Answer(
                    data: shown(answer, answering: command),
                    text: output.reveal || !command.reachesCard ? printableText(answer) : nil)
            }
            return
        }
        try await readerOptions.withCard { reader, _, channel in
            try await exchange(commands, with: reader.identity) { command in
                let response = try await channel.transmit(command)
                return Answer(data: shown(response.data, answering: command), status: response.status)
            }
        }
    }

    private struct Answer {
        let data: String
        var status: StatusWord?
        /// The data as text, if all of it is text.
        var text: String?
    }

    private func exchange(
        _ commands: [CommandAPDU], with reader: ReaderIdentity,
        _ send: (CommandAPDU) async throws -> Answer
    ) async throws {
        var exchanges: [Report.Exchange] = []
        var failure: (any Error)?
        for command in commands where failure == nil {
            let sent = shown(command)
            if !output.json { Terminal.print("> \(sent)") }
            do {
                let answer = try await send(command)
                exchanges.append(
                    .init(
                        command: sent, data: answer.data,
                        status: answer.status.map { [$0.sw1, $0.sw2].hex }, statusName: answer.status?.name))
                let parts = [
                    answer.data, answer.status.map { Terminal.styled("\($0)", .bold) }, answer.text.map { "“\($0)”" },
                ]
                if !output.json {
                    Terminal.print("< " + parts.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: "  "))
                }
            } catch {
                exchanges.append(.init(command: sent, error: "\(error)"))
                failure = error
            }
        }
        if output.json { try Report.print(Report.Exchanges(reader: .init(reader), exchanges: exchanges)) }
        if let failure { throw failure }
    }

    private func shown(_ command: CommandAPDU) -> String {
        output.reveal ? command.bytes.hex : SensitiveData.maskedHex(command)
    }

    private func shown(_ data: [UInt8], answering command: CommandAPDU) -> String {
        if output.reveal { return data.hex }
        // D5 41 or D5 43 and the error code are shown; the card's data may be anything.
        if command.reachesCard { return data.prefix(3).hex + String(repeating: "*", count: max(0, data.count - 3) * 2) }
        // The reader's own data contains digits, but no account number.
        if command.isForReader { return data.hex }
        return SensitiveData.maskedHex(data, answering: command)
    }

    private func printableText(_ bytes: [UInt8]) -> String? {
        bytes.count > 3 && bytes.allSatisfy { (0x20...0x7E).contains($0) }
            ? String(decoding: bytes, as: UTF8.self) : nil
    }
}

extension CommandAPDU {
    /// True for one of the reader's own commands, `FF 00 …` (ACS API v2.04, 6).
    fileprivate var isForReader: Bool { cla == 0xFF && ins == 0x00 }

    /// True if the reader's PN532 passes the data on to the card, unseen by the APDU layers: InDataExchange and
    /// InCommunicateThru (NXP UM0701-02, 7.3.8 and 7.3.9).
    fileprivate var reachesCard: Bool { data.starts(with: [0xD4, 0x40]) || data.starts(with: [0xD4, 0x42]) }
}

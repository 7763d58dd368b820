import ArgumentParser
import CardReaders
import ToolReaders
import ToolSupport

@main
struct ReaderProbe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reader-probe",
        abstract: "Shows contactless readers and the data of their cards.",
        usage: "reader-probe [<subcommand>] [<options>]",
        discussion: """
            Without a subcommand: lists the readers, then reads the first contactless card it finds, or waits for one.
            Without hardware: reader-probe --virtual. The options: reader-probe help emv.

            EXIT STATUS
              0  read
              2  the command line or the input is invalid, or the output cannot be written
              3  no reader
              4  no card
              5  the card or the reader failed
              6  no permission, or no smart card service
              7  a travel document was read and is not believed, or a phone gave no pass
            """,
        version: PackageVersion.current,
        subcommands: [
            OverviewCommand.self, ListCommand.self, WatchCommand.self, CardCommand.self, EMVCommand.self,
            PayCommand.self, PassCommand.self, PollCommand.self, PassportCommand.self, TrustCommand.self,
            APDUCommand.self, DecodeCommand.self, ReaderCommand.self, BeepCommand.self, LEDCommand.self,
            ResetCommand.self, DoctorCommand.self,
        ],
        defaultSubcommand: OverviewCommand.self)

    static func main() async {
        ProgramExit.takeSignals(giveBack: Machine.giveBack)
        await ProgramExit.whenDone {
            do {
                try await parseAndRun()
                return 0
            } catch {
                return Terminal.report(error, of: self)
            }
        }
    }
}

import ArgumentParser
import Glibc
import ToolSupport

@main
struct APDUTrace: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "apdu-trace", abstract: "Records and plays what passes between a program and a card.")
}

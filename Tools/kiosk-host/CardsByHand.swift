import Foundation
import SandboxClient
import SmartCardSimulator
import ToolSupport

/// Puts cards on the software reader, and takes them away, as lines on standard input say.
enum CardsByHand {
    static func follow(_ device: SoftwareACR122U) {
        Thread.detachNewThread {
            ControlLines.take(from: STDIN_FILENO) {
                Terminal.print($0)
                return true
            } perform: { name, argument in
                switch (name, argument) {
                case ("insert", let name?):
                    guard let card = Demonstration.card(name) else {
                        throw Unknown(description: "no card “\(name)”: virtual-reader --list-cards shows them")
                    }
                    device.insert(card)
                case ("remove", nil): device.remove()
                case ("fault", "none"?): device.faults = []
                case ("fault", let text?):
                    let fault = try SoftwareReaderFault(text.replacing(" ", with: "="))
                    device.faults = device.faults.filter { $0.kind != fault.kind } + [fault]
                default: throw Unknown(description: "the commands are insert CARD, remove, and fault NAME [ARG]")
                }
            }
        }
    }

    private struct Unknown: Error, CustomStringConvertible { let description: String }
}

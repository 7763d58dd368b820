import ArgumentParser
import Foundation
import Glibc
import SmartCardSimulator
import SmartCardSimulatorHosts
import ToolSupport

@main
struct VirtualReaderTool: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "virtual-reader",
        abstract: "Run a program with a software card reader plugged in.",
        usage: "virtual-reader [OPTION]... [-- COMMAND [ARGUMENT]...]",
        discussion: """
            COMMAND sees an ACS ACR122U with the cards on it, through a private pcscd; the machine's pcscd, its readers and \
            other programs are unaffected. Standard input, output and error are COMMAND's; signals are passed on to it. \
            Without COMMAND, the reader stays until interrupted, and the line to set up another terminal is printed.

            EXAMPLES
              virtual-reader --card visa -- opensc-tool --atr
              virtual-reader --card visa --model acr1252u -- pcsc_scan
              virtual-reader --card visa --usb -- lsusb -d 072f:2200 -v
              virtual-reader --card ./my.card --fault slow=250 -- pcsc_scan
              virtual-reader --card ntag213 --host pty -- nfc-list

            USB
              By default, COMMAND finds the reader through PC/SC alone, with no change to COMMAND's process. With --usb, it \
            also sees the mock USB bus, through a library preloaded into it and its children (libumockdev-preload). \
            Programs built with a sanitizer do not start with the library.

            USB/IP
              With --host usbip, the reader is exported to this machine's kernel, and there is no private pcscd. The printed \
            line, run as root after 'modprobe vhci-hcd', attaches the reader, which is then a true USB device with \
            drivers, udev rules and the machine's pcscd. COMMAND gets the port in VIRTUAL_READER_PORT.

            PSEUDO-TERMINAL
              With --host pty, the reader is a PN532 board on a serial line, and there is neither USB nor pcscd. COMMAND \
            gets the line's device in VIRTUAL_READER_DEVICE, and, for programs that use libnfc, in LIBNFC_DEVICE.

            CONTROL SOCKET
              With --control, a line sent to the socket is answered by 'ok' or 'error: ...':
                plug              plug the reader in, with the cards that were on it
                unplug            unplug the reader
                insert CARD       put a card on the reader: a name or a file, as with --card
                remove            remove all cards
                fault NAME [ARG]  activate a fault; 'fault none' deactivates all faults
                quit              end COMMAND and virtual-reader

            EXIT STATUS
              that of COMMAND, or 128 plus the number of the signal that ended it; without COMMAND 0
              125  virtual-reader itself failed: incorrect usage, or the setup of the reader failed
              126  COMMAND cannot be executed
              127  COMMAND was not found
            """,
        version: PackageVersion.current)

    enum HostKind: String, ExpressibleByArgument, CaseIterable {
        case umockdev, vpcd, usbip, pty
    }

    @Option(
        name: .long,
        help: .init("A card on the reader: a name of --list-cards, or a card file. Repeatable.", valueName: "name|file")
    )
    var card: [String] = []

    @Option(
        help: .init(
            "umockdev: an ACR122U on a mock USB bus. vpcd: a bare card in vsmartcard's reader, without USB. "
                + "usbip: an ACR122U that 'usbip attach' attaches to this machine's kernel. "
                + "pty: a PN532 board on a pseudo-terminal.",
            valueName: "umockdev|vpcd|usbip|pty"))
    var host = HostKind.umockdev

    @Option(
        help: .init(
            "The TCP port of --host usbip, on 127.0.0.1; 0 selects a free one. (default: \(USBIPHost.usualPort))",
            valueName: "number"))
    var port: UInt16?

    enum Model: String, ExpressibleByArgument, CaseIterable { case acr122u, acr1252u }

    @Option(
        help: .init(
            "The reader: an ACR122U, or an ACR1252U with a slot for cards and one for a SAM.",
            valueName: "acr122u|acr1252u"))
    var model: Model?

    @Option(
        help: .init(
            "The ACR122U's firmware: \(ACR122UProfile.all.map(\.version).joined(separator: ", ")). "
                + "(default: \(ACR122UProfile.firmware216.version))",
            valueName: "version"))
    var firmware: String?

    @Option(
        name: .long, help: .init("A fault from --list-faults. Repeatable.", valueName: "name[=arg]"))
    var fault: [String] = []

    @Flag(help: "Give COMMAND access to the mock USB bus.")
    var usb = false

    @Flag(
        name: .customLong("no-pcscd"),
        help: "Start no pcscd; COMMAND sees the mock USB bus as with --usb.")
    var leavesOutPCSCD = false

    @Option(help: .init("Listen for commands on a Unix socket.", valueName: "socket"))
    var control: String?

    @Option(help: .init("Write pcscd's debug log, including APDUs, to a file.", valueName: "file"))
    var pcscdLog: String?

    @Flag(help: "Print the built-in cards and exit.")
    var listCards = false

    @Flag(help: "Print the faults and exit.")
    var listFaults = false

    @Flag(help: "Print the certificate of the test authority behind the virtual passports, in PEM, and exit.")
    var passportAuthority = false

    @Flag(help: "With --list-cards or --list-faults: print one JSON object instead of text.")
    var json = false

    @Argument(parsing: .postTerminator, help: .hidden)
    var command: [String] = []

    static func main() {
        do {
            Glibc.exit(try parse().result())
        } catch let error as HostError {
            Glibc.exit(Terminal.report(ToolError(status: 125, summary: "\(error)", hint: error.hint), of: self))
        } catch {
            // 2 may be the command's.
            let status = Terminal.report(error, of: self)
            Glibc.exit(status == 2 ? 125 : status)
        }
    }

    /// The exit status.
    func result() throws -> Int32 {
        if listCards {
            try Listing.print(
                "cards", VirtualCards.all.map { Listing(name: $0.name, summary: $0.summary) }, width: 23, json: json)
            return 0
        }
        if listFaults {
            let faults =
                host == .pty
                ? PN532BoardFault.Kind.allCases.map { ($0.rawValue, $0.argument?.name, $0.summary) }
                : SoftwareReaderFault.Kind.allCases.map { ($0.rawValue, $0.argument?.name, $0.summary) }
            try Listing.print(
                "faults", faults.map { Listing(name: $0.0, argument: $0.1, summary: $0.2) }, width: 26, json: json)
            return 0
        }
        if passportAuthority {
            let lines = Data(TestIssuingState.authorityCertificate)
                .base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
            print("-----BEGIN CERTIFICATE-----\n\(lines)\n-----END CERTIFICATE-----")
            return 0
        }
        guard !json else {
            throw HostError("--json goes with --list-cards or --list-faults", hint: "Leave it out, or add one of them.")
        }
        let faults = host == .pty ? [] : try fault.map { try readFault($0) }
        let model = try readerModel()
        let cards = try card.map { try readCard($0) }
        if usb, host != .umockdev {
            throw HostError("--usb needs a USB reader", hint: "Omit --usb, or use --host umockdev.")
        }
        if port != nil, host != .usbip {
            throw HostError("--port is for USB/IP", hint: "Omit --port, or use --host usbip.")
        }
        if pcscdLog != nil, host == .usbip || host == .pty || leavesOutPCSCD {
            throw HostError("no pcscd is started", hint: "Omit --pcscd-log, or use --host umockdev.")
        }
        if leavesOutPCSCD, host != .umockdev {
            throw HostError("--no-pcscd is for the mock USB bus", hint: "Omit it, or use --host umockdev.")
        }
        let program = try command.first.map { try find($0) }
        if host == .umockdev { try Preload.ensure() }

        let signals = Signals()
        let setup: any Setup =
            switch host {
            case .umockdev where leavesOutPCSCD: try FreeUSBSetup(model: model, faults: faults, cards: cards)
            case .umockdev: try USBSetup(model: model, faults: faults, cards: cards, log: pcscdLog)
            case .vpcd: try VPCDSetup(faults: faults, cards: cards, log: pcscdLog)
            case .usbip:
                try USBIPSetup(port: port ?? USBIPHost.usualPort, model: model, faults: faults, cards: cards)
            case .pty: try BoardSetup(faults: fault.map { try readBoardFault($0) }, cards: cards)
            }
        defer { setup.stop() }
        let socket = try control.map { try ControlSocket(at: $0, setup) }
        defer { socket?.remove() }

        let seen = setup.environment.merging(usb ? setup.usbEnvironment : [:]) { $1 }
        guard let program else {
            if let command = setup.attachCommand {
                print(command)
            } else {
                for (name, value) in seen.sorted(by: { $0.key < $1.key }) { print("export \(name)='\(value)'") }
            }
            fflush(nil)
            say("'\(setup.readerName)' is ready; interrupt to end")
            signals.waitForEnd()
            return 0
        }
        if let signal = signals.pending { return 128 + signal }
        // The command is signaled when this process dies in any way.
        let guardian = ChildProcess.find("setpriv")
        let child = try ChildProcess(
            (guardian.map { [$0, "--pdeathsig", "TERM", "--"] } ?? []) + [program] + command.dropFirst(),
            environment: Preload.cleanEnvironment.merging(seen) { $1 })
        return signals.passOn(to: child)
    }

    private func readerModel() throws -> ReaderModel {
        if model != nil, host != .umockdev, host != .usbip {
            throw HostError("--model needs a USB reader", hint: "Omit it, or use --host umockdev.")
        }
        if model == .acr1252u {
            guard firmware == nil else {
                throw HostError("--firmware is for the ACR122U", hint: "Omit it, or use --model acr122u.")
            }
            return .acr1252u
        }
        guard let profile = firmware.map({ ACR122UProfile(version: $0) }) ?? .firmware216 else {
            throw HostError(
                "there is no firmware \(firmware ?? "")",
                hint: "Choose one of \(ACR122UProfile.all.map(\.version).joined(separator: ", ")).")
        }
        return .acr122u(profile)
    }

    private func find(_ name: String) throws -> String {
        if let path = ChildProcess.find(name) { return path }
        let exists = name.contains("/") && access(name, F_OK) == 0
        throw exists
            ? ToolError(
                status: 126, summary: "\(name) cannot be executed", hint: "Check its permissions: chmod +x \(name)")
            : ToolError(status: 127, summary: "\(name) was not found", hint: "Check the name, or install the program.")
    }
}

/// Standard output is the command's.
func say(_ text: String) {
    let line = "virtual-reader: \(text)\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
}

/// A card by the name of a built-in one, or from a card file.
func readCard(_ name: String) throws -> any VirtualCard {
    if let card = VirtualCards.named(name) { return card }
    guard name.contains("/") || name.contains(".") || access(name, F_OK) == 0 else {
        throw HostError(
            "no card is named '\(name)'",
            hint: "Name a card file, or one that virtual-reader --list-cards shows.")
    }
    let file = open(name, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else {
        throw HostError(
            "\(name): \(String(cString: strerror(errno)))",
            hint: "Name a card file, or one that virtual-reader --list-cards shows.")
    }
    defer { close(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 8192)
    while bytes.count <= CardFile.maximumSize, case let count = read(file, &buffer, buffer.count), count > 0 {
        bytes += buffer[..<count]
    }
    do {
        return try CardFile(parsing: bytes).makeCard()
    } catch {
        throw HostError(
            "\(name): \(error)",
            hint:
                "The format: Sources/SmartCardSimulator/Documentation.docc/CardFileFormat.md; examples: Sources/SmartCardSimulator/Cards."
        )
    }
}

/// `garbage` or `garbage=250`.
func readBoardFault(_ text: String) throws -> PN532BoardFault {
    if let fault = PN532BoardFault(text) { return fault }
    throw HostError("no fault is '\(text)'", hint: "virtual-reader --host pty --list-faults explains them.")
}

/// `slow` or `slow=250`.
func readFault(_ text: String) throws -> SoftwareReaderFault {
    do {
        return try SoftwareReaderFault(text)
    } catch {
        throw HostError("\(error)", hint: "virtual-reader --list-faults explains them.")
    }
}

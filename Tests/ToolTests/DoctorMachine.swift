import Foundation
import SmartCard
import TestSupport
import Testing

/// A faultless machine made of files, which a test breaks: one ACR122U with firmware 2.07 at port 2
/// of bus 1, a pcscd that holds it, and a card.
final class DoctorMachine {
    let root: String
    private(set) var service: FakePCSCD?
    /// The user that looks, where it is not the test's own.
    var user: Int?
    /// Added to the environment.
    var environment: [String: String] = [:]

    static let readerName = "ACS ACR122U PICC Interface 00 00"
    var device: String { "sys/bus/usb/devices/1-2" }
    var socket: String { "\(root)/run/pcscd/pcscd.comm" }

    init() throws {
        var template = Array("/tmp/doctor-XXXXXX".utf8CString)
        root = try #require(mkdtemp(&template).map { String(cString: $0) })
        chmod(root, 0o755)
        try addReader()
        try write("proc/modules", "usbcore 331776 1 - Live 0x0000000000000000\n")
        try write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet\n")
        try write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
        try write(
            "lib/modules/6.1.0-18-amd64/modules.dep",
            "kernel/drivers/nfc/pn533/pn533_usb.ko: kernel/drivers/nfc/pn533/pn533.ko\n")
        try addProcess(812, "pcscd", opening: "/dev/bus/usb/001/004")
        for (file, folder) in [
            ("contactless-readers-blacklist.conf", "etc/modprobe.d"),
            ("70-contactless-readers.rules", "etc/udev/rules.d"),
        ] { try write("\(folder)/\(file)", try Self.shipped(file)) }
        try setPCSCD(version: "1.9.9", features: "polkit")
        try setPolkit(pcsc: 0, card: 0)
        try write("etc/libccid_Info.plist", Self.infoPlist)
        try link("usr/lib/pcsc/drivers/ifd-ccid.bundle/Contents/Info.plist", to: "/etc/libccid_Info.plist")
        try writePackages(service: "1.9.9-2", library: "1.9.9-2")
        try write("run/systemd/system/keep", "")
        try link("etc/systemd/system/sockets.target.wants/pcscd.socket", to: "/lib/systemd/system/pcscd.socket")
        try startService()
    }

    deinit {
        service?.stop()
        try? FileManager.default.removeItem(atPath: root)
    }

    // MARK: Files

    func write(_ path: String, _ text: String) throws { try write(path, bytes: Array(text.utf8)) }

    func write(_ path: String, bytes: [UInt8]) throws {
        try makeFolder(of: path)
        try Data(bytes).write(to: URL(fileURLWithPath: "\(root)/\(path)"))
    }

    func link(_ path: String, to target: String) throws {
        try makeFolder(of: path)
        remove(path)
        try FileManager.default.createSymbolicLink(atPath: "\(root)/\(path)", withDestinationPath: target)
    }

    func remove(_ path: String) { try? FileManager.default.removeItem(atPath: "\(root)/\(path)") }

    func read(_ path: String) -> String { (try? String(contentsOfFile: "\(root)/\(path)", encoding: .utf8)) ?? "" }

    func replace(_ text: String, with other: String, in path: String) throws {
        try write(path, read(path).replacingOccurrences(of: text, with: other))
    }

    private func makeFolder(of path: String) throws {
        try FileManager.default.createDirectory(
            at: URL(fileURLWithPath: "\(root)/\(path)").deletingLastPathComponent(), withIntermediateDirectories: true)
    }

    private static func shipped(_ name: String) throws -> String {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../udev")
        return try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    // MARK: The machine's parts

    /// The descriptors of an ACR122U 2.07 (CCID project, readers/ACR122U_PICC.txt).
    static let descriptors = bytes(
        """
        12 01 10 01 00 00 00 08 2F 07 00 22 07 02 01 02 00 01
        09 02 5D 00 01 01 00 80 64
        09 04 00 00 03 0B 00 00 00
        36 21 00 01 00 07 02 00 00 00 A0 0F 00 00 A0 0F 00 00 00
        00 2A 00 00 90 D0 03 00 00 00 01 00 00 00 00 00 00 00 00 00
        00 40 00 02 00 0F 01 00 00 00 00 00 00 00 01
        07 05 81 03 08 00 02
        07 05 02 02 40 00 00
        07 05 82 02 40 00 00
        """)

    private func addReader() throws {
        let attributes = [
            "idVendor": "072f", "idProduct": "2200", "bcdDevice": "0207", "manufacturer": "ACS",
            "product": "ACR122U PICC Interface", "speed": "12", "busnum": "1", "devnum": "4",
            "bConfigurationValue": "1",
            "authorized": "1", "power/control": "on",
        ]
        for (name, value) in attributes { try write("\(device)/\(name)", value + "\n") }
        try write("\(device)/descriptors", bytes: Self.descriptors)
        try write("\(device):1.0/bInterfaceNumber", "00\n")
        try write("\(device):1.0/bInterfaceClass", "0b\n")
        try setDriver("usbfs")
        // A root hub, which is no reader.
        try write("sys/bus/usb/devices/usb1/idVendor", "1d6b\n")
        try write("sys/bus/usb/devices/usb1/idProduct", "0002\n")
        try write("dev/bus/usb/001/004", "")
        chmod("\(root)/dev/bus/usb/001/004", 0o664)
    }

    func removeReader() {
        remove(device)
        remove("\(device):1.0")
    }

    /// Moves the reader to another port.
    func moveReader(to place: String) throws {
        for suffix in ["", ":1.0"] {
            try FileManager.default.moveItem(
                atPath: "\(root)/\(device)\(suffix)", toPath: "\(root)/sys/bus/usb/devices/\(place)\(suffix)")
        }
    }

    /// Nobody but root may open the device, and the doctor is not root.
    func forbidNode() {
        chmod("\(root)/dev/bus/usb/001/004", 0)
        if geteuid() == 0 { user = 65534 }
    }

    func setDriver(_ driver: String?) throws {
        remove("\(device):1.0/driver")
        if let driver { try link("\(device):1.0/driver", to: "../../../../bus/usb/drivers/\(driver)") }
    }

    func addProcess(_ id: Int, _ name: String, user: Int = 0, group: Int = 0, opening node: String? = nil) throws {
        try write("proc/\(id)/comm", name + "\n")
        try write(
            "proc/\(id)/status",
            "Name:\t\(name)\nUid:\t\(user)\t\(user)\t\(user)\t\(user)\nGid:\t\(group)\t\(group)\t\(group)\t\(group)\nGroups:\t\(group) \n"
        )
        try link("proc/\(id)/fd/0", to: "/dev/null")
        if let node { try link("proc/\(id)/fd/9", to: node) }
    }

    /// What pcsc-lite 1.9.9 answers to `--version`.
    func setPCSCD(version: String, features: String) throws {
        try writeProgram(
            "usr/sbin/pcscd",
            """
            [ "$*" = --version ] || exit 1
            echo 'pcsc-lite version \(version).'
            echo 'Copyright (C) 1999-2002 by David Corcoran <corcoran@musclecard.com>.'
            echo 'Enabled features: Linux x86_64-pc-linux-gnu libsystemd serial usb libudev \(features) filter'
            echo 'MAX_READERNAME: 128, PCSCLITE_MAX_READERS_CONTEXTS: 16'
            """)
    }

    /// What pkcheck ends with, asked about the program that runs it: 0 allowed, 1 denied, 2 authentication required, 126
    /// no bus, 127 any other error.
    func setPolkit(pcsc: Int, card: Int, saying words: String = "") throws {
        try writeProgram(
            "bin/pkcheck",
            """
            case "$*" in
            "--action-id org.debian.pcsc-lite.access_pcsc --process $PPID,"[0-9]*,[0-9]*) status=\(pcsc) ;;
            "--action-id org.debian.pcsc-lite.access_card --process $PPID,"[0-9]*,[0-9]*) status=\(card) ;;
            *) echo "$*" >&2; exit 99 ;;
            esac
            echo '\(words.replacingOccurrences(of: "'", with: #"'\''"#))' >&2
            exit $status
            """)
    }

    func writeProgram(_ path: String, _ script: String) throws {
        try write(path, "#!/bin/sh\n\(script)\n")
        chmod("\(root)/\(path)", 0o755)
    }

    func writePackages(service: String, library: String) throws {
        let stanzas = [("libc6", "2.36-9"), ("libpcsclite1", library), ("pcscd", service)].map {
            "Package: \($0)\nStatus: install ok installed\nArchitecture: amd64\nVersion: \($1)\nDescription: made for a test\n"
        }
        try write("var/lib/dpkg/status", stanzas.joined(separator: "\n"))
    }

    /// As Debian's libccid has it, with two of its readers.
    private static let infoPlist = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
        \t<key>CFBundleShortVersionString</key>
        \t<string>1.5.2</string>
        \t<key>ifdDriverOptions</key>
        \t<string>0x0000</string>

        \t<!-- Possible values for ifdDriverOptions
        \t0x01: DRIVER_OPTION_CCID_EXCHANGE_AUTHORIZED
        \t-->

        \t<key>ifdVendorID</key>
        \t<array>
        \t\t<string>0x09C3</string>
        \t\t<string>0x072F</string>
        \t</array>
        \t<key>ifdProductID</key>
        \t<array>
        \t\t<string>0x0008</string>
        \t\t<string>0x2200</string>
        \t</array>
        \t<key>ifdFriendlyName</key>
        \t<array>
        \t\t<string>ActivCard ActivCard USB Reader V2</string>
        \t\t<string>ACS ACR122U PICC Interface</string>
        \t</array>
        </dict>
        </plist>

        """

    // MARK: pcscd

    /// A MIFARE Classic 1K (PC/SC part 3, 3.1.3.2.3.2).
    static let atr = bytes("3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 01 00 00 00 00 6A")

    func startService(
        readers: [FakePCSCD.Reader]? = nil, _ change: (inout FakePCSCD.Behavior) -> Void = { _ in }
    ) throws {
        service?.stop()
        try makeFolder(of: "run/pcscd/pcscd.comm")
        var behavior = FakePCSCD.Behavior()
        behavior.transmit = { _, command in
            switch command {
            case [0xFF, 0x00, 0x48, 0x00, 0x00]: .data(Array("ACR122U207".utf8))
            case [0xFF, 0x00, 0x50, 0x00, 0x00]: .data([0x90, 0xFF])
            // A made-up UID.
            case [0xFF, 0xCA, 0x00, 0x00, 0x00]: .data([0x04, 0xA1, 0xB2, 0xC3, 0x90, 0x00])
            default: .data([0x6D, 0x00])
            }
        }
        change(&behavior)
        let readers = readers ?? [FakePCSCD.Reader(Self.readerName).inserting(Self.atr)]
        service = try FakePCSCD(path: socket, readers: readers, behavior: behavior)
        chmod(socket, 0o777)
    }

    func stopService(keepingSocket: Bool = false) {
        if keepingSocket { service?.stopKeepingSocket() } else { service?.stop() }
        remove("proc/812")
    }

    // MARK: The doctor

    /// Runs a command that the doctor gave, on the files of this machine and with programs that do nothing.
    func carryOut(_ command: String) async throws {
        for name in ["modprobe", "systemctl", "udevadm", "usermod"] { try writeProgram("bin/\(name)", "") }
        try writeProgram("bin/sudo", "exec \"$@\"")
        let here = ["/etc/", "/sys/"].reduce(command) { $0.replacingOccurrences(of: " \($1)", with: " \(root)\($1)") }
        let outcome = try await Program.run(
            ["sh", "-e"], environment: ["PATH": "\(root)/bin:/usr/bin:/bin"], input: here)
        #expect(outcome.status == 0, "\(here): \(outcome)")
    }

    struct Finding: Decodable {
        let check: String
        let result: String
        let reader: String?
        let summary: String
        let command: String?
        let advice: String?
    }

    struct Diagnosis: Decodable {
        let findings: [Finding]
        let cardWasRead: Bool
        let exitStatus: Int32
    }

    func doctor(_ arguments: String...) async throws -> (outcome: Program.Outcome, diagnosis: Diagnosis) {
        var command = [Program.built("reader-probe"), "doctor", "--json", "--timeout", "0", "--root", root] + arguments
        if let user { command = ["setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups"] + command }
        let outcome = try await Program.run(
            command,
            environment: ["PCSCLITE_CSOCK_NAME": socket, "SSH_CONNECTION": "", "PATH": "\(root)/bin"]
                .merging(environment) { $1 })
        return (outcome, try JSONDecoder().decode(Diagnosis.self, from: Data(outcome.output.utf8)))
    }
}

private func bytes(_ hex: String) -> [UInt8] {
    hex.split(whereSeparator: \.isWhitespace).compactMap { UInt8($0, radix: 16) }
}

import Foundation
import SmartCard
import TestSupport
import Testing

/// `reader-probe doctor` on machines with one fault each.
@Suite struct DoctorTests {
    @Test func nothingIsWrong() async throws {
        let (outcome, diagnosis) = try await DoctorMachine().doctor()
        for finding in diagnosis.findings { #expect(["ok", "skipped"].contains(finding.result), "\(finding)") }
        #expect(diagnosis.cardWasRead && diagnosis.exitStatus == 0 && outcome.status == 0, "\(outcome)")
        #expect(outcome.error.isEmpty)
        let checks = diagnosis.findings.map(\.check)
        #expect(Set(checks).count == checks.count)
        let firmware = diagnosis.findings.first { $0.check == "reader.firmware" }
        #expect(firmware?.summary == "ACR122U207")
    }

    @Test(arguments: ["1.6.2", "1.10.0", "2.0"]) func aDriverThatWaitsIsNotBlamed(_ version: String) async throws {
        let machine = try DoctorMachine()
        try machine.replace("1.5.2", with: version, in: "etc/libccid_Info.plist")
        let (_, diagnosis) = try await machine.doctor()
        #expect(diagnosis.findings.first { $0.check == "driver.installed" }?.summary == "ifd-ccid \(version)")
        try machine.startService(readers: [])
        let (_, other) = try await machine.doctor()
        let summary = other.findings.first { $0.check == "service.reader" }?.summary
        #expect(summary == "a reader is plugged in, and pcscd does not show it")
    }

    /// One thing that is wrong, and what is said of it.
    struct Condition: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let check: String
        let result: String
        /// In the summary.
        let says: String
        /// In the command; nil for advice.
        let command: String?
        let status: Int32
        let make: @Sendable (DoctorMachine) throws -> Void

        init(
            _ description: String, _ check: String, _ result: String, says: String, command: String? = nil,
            status: Int32, make: @escaping @Sendable (DoctorMachine) throws -> Void
        ) {
            testDescription = description
            (self.check, self.result, self.says, self.command) = (check, result, says, command)
            (self.status, self.make) = (status, make)
        }
    }

    /// pkcheck 122, with and without an authentication that would help; and without pcscd's policy.
    private static let authenticationRequired = "Authorization requires authentication and -u wasn't passed."
    private static let unknownAction =
        "Error checking for authorization org.debian.pcsc-lite.access_pcsc: GDBus.Error:org.freedesktop.PolicyKit1.Error.Failed: Action org.debian.pcsc-lite.access_pcsc is not registered"

    static let conditions: [Condition] = [
        // The machine
        Condition("a container without udev", "machine.kind", "warning", says: "(docker) without udev", status: 0) {
            try $0.write(".dockerenv", "")
        },
        // The device
        Condition("no reader", "usb.reader", "problem", says: "no reader is plugged in", status: 3) {
            $0.removeReader()
            try $0.startService(readers: [])
        },
        Condition("no USB", "usb.reader", "problem", says: "/sys/bus/usb/devices is missing", status: 3) {
            $0.remove("sys")
            try $0.startService(readers: [])
        },
        Condition("a reader that is no CCID reader", "usb.reader", "warning", says: "SCM SCL3711", status: 0) {
            try $0.write("\($0.device)/idVendor", "04e6\n")
            try $0.write("\($0.device)/idProduct", "5591\n")
        },
        Condition(
            "not authorized", "usb.power", "problem", says: "told not to use it", command: "1-2/authorized", status: 5
        ) {
            try $0.write("\($0.device)/authorized", "0\n")
        },
        Condition("no power for it", "usb.power", "problem", says: "200 mA", status: 5) {
            try $0.write("\($0.device)/bConfigurationValue", "\n")
        },
        Condition("on a hub without power", "usb.power", "warning", says: "hub without a power supply", status: 0) {
            try $0.moveReader(to: "1-1.3")
            try $0.write("sys/bus/usb/devices/1-1/bmAttributes", "80\n")
        },
        Condition("put to sleep", "usb.power", "warning", says: "suspends it", command: "1-2/power/control", status: 0)
        {
            try $0.write("\($0.device)/power/control", "auto\n")
        },
        Condition("low speed", "usb.power", "warning", says: "1.5 Mbit/s", status: 0) {
            try $0.write("\($0.device)/speed", "1.5\n")
        },
        Condition("a clone with a serial number", "usb.genuine", "warning", says: "A02014090501", status: 0) {
            try $0.write("\($0.device)/serial", "A02014090501\n")
        },
        Condition("a clone with two slots", "usb.genuine", "warning", says: "2 slots", status: 0) {
            // bMaxSlotIndex: the fifth byte of the functional descriptor, which begins at 36.
            var bytes = DoctorMachine.descriptors
            bytes[36 + 4] = 0x01
            try $0.write("\($0.device)/descriptors", bytes: bytes)
        },
        Condition("a clone by its name", "usb.genuine", "warning", says: "CCID USB Reader", status: 0) {
            try $0.write("\($0.device)/product", "CCID USB Reader\n")
        },
        // Who has it
        Condition(
            "the kernel holds it", "kernel.driver", "problem", says: "pn533_usb holds it",
            command: "modprobe -r pn533_usb",
            status: 5
        ) {
            try $0.setDriver("pn533_usb")
            try $0.startService(readers: [])
        },
        Condition(
            "the module is loaded", "kernel.modules", "warning", says: "is loaded", command: "blacklist %s", status: 0
        ) {
            $0.remove("etc/modprobe.d")
            try $0.write("proc/modules", "pn533_usb 20480 0 - Live 0x0\npn533 49152 1 pn533_usb, Live 0x0\n")
        },
        Condition(
            "not blacklisted", "kernel.modules", "warning", says: "may be loaded", command: "/etc/modprobe.d/",
            status: 0
        ) { $0.remove("etc/modprobe.d/contactless-readers-blacklist.conf") },
        Condition(
            "the wrong modules blacklisted", "kernel.modules", "warning", says: "nfc and pn533 does not stop it",
            command: "pn533_usb", status: 0
        ) {
            try $0.write(
                "etc/modprobe.d/contactless-readers-blacklist.conf",
                "# blacklist pn533_usb\nblacklist nfc\nblacklist pn533\n")
        },
        Condition(
            "blacklisted too late", "kernel.modules", "warning", says: "loaded already",
            command: "modprobe -r pn533_usb",
            status: 0
        ) { try $0.write("proc/modules", "pn533_usb 20480 0 - Live 0x0\n") },
        Condition(
            "another program holds it", "usb.holder", "problem", says: "nfc-poll (process 4711)",
            command: "sudo kill 4711",
            status: 5
        ) {
            $0.remove("proc/812/fd/9")
            try $0.addProcess(4711, "nfc-poll", opening: "/dev/bus/usb/001/004")
            try $0.startService(readers: [])
        },
        Condition(
            "nobody to be seen holds it", "usb.holder", "problem", says: "not to be seen",
            command: "lsof /dev/bus/usb/001/004",
            status: 5
        ) { $0.remove("proc/812/fd/9") },
        Condition("no device node", "usb.access", "problem", says: "/dev/bus/usb/001/004 is missing", status: 5) {
            $0.remove("dev")
        },
        Condition(
            "this user may not open it", "usb.access", "warning", says: "only pcscd", command: "plugdev", status: 0
        ) {
            $0.forbidNode()
        },
        Condition(
            "pcscd may not open it", "usb.access", "problem", says: "user 998 and may not", command: "udevadm trigger",
            status: 5
        ) {
            try $0.addProcess(812, "pcscd", user: 998, group: 998)
            try $0.setDriver(nil)
            try $0.startService(readers: [])
        },
        Condition(
            "no udev rule", "usb.rule", "warning", says: "no udev rule", command: "/etc/udev/rules.d/70-", status: 0
        ) {
            try $0.replace("2200|", with: "", in: "etc/udev/rules.d/70-contactless-readers.rules")
        },
        Condition(
            "a udev rule too late", "usb.rule", "warning", says: "99-acr122.rules tags it", command: "sudo mv",
            status: 0
        ) {
            $0.remove("etc/udev/rules.d")
            try $0.write(
                "etc/udev/rules.d/99-acr122.rules",
                #"SUBSYSTEM=="usb", ATTR{idVendor}=="072f", ATTR{idProduct}=="2200", TAG+="uaccess""# + "\n")
        },
        // The driver
        Condition("no libccid", "driver.installed", "problem", says: "no driver", command: "install libccid", status: 6)
        {
            $0.remove("usr/lib/pcsc")
            try $0.startService(readers: [])
        },
        Condition(
            "libccid does not know it", "driver.reader", "problem", says: "does not know 072F:2200", command: "libccid",
            status: 5
        ) {
            try $0.replace("0x2200", with: "0x2300", in: "etc/libccid_Info.plist")
            try $0.startService(readers: [])
        },
        Condition("two drivers", "driver.reader", "warning", says: "ifd-acsccid, ifd-ccid", status: 0) {
            try $0.link("usr/lib/pcsc/drivers/ifd-acsccid.bundle/Contents/Info.plist", to: "/etc/libccid_Info.plist")
        },
        Condition(
            "old firmware", "driver.firmware", "problem", says: "refuses firmware 2.03", command: "0x0004", status: 5
        ) {
            try $0.write("\($0.device)/bcdDevice", "0203\n")
            try $0.startService(readers: [])
        },
        Condition("no escape", "driver.escape", "warning", says: "TPDU level", command: "0x0001", status: 0) {
            // dwFeatures of the Touchatag: 00010030
            var bytes = DoctorMachine.descriptors
            bytes.replaceSubrange(36 + 40..<36 + 44, with: [0x30, 0x00, 0x01, 0x00])
            try $0.write("\($0.device)/descriptors", bytes: bytes)
        },
        // The service
        Condition(
            "no pcscd", "service.installed", "problem", says: "not installed", command: "apt-get install pcscd",
            status: 6
        ) {
            try $0.setDriver(nil)
            $0.remove("usr/sbin")
            $0.stopService()
        },
        Condition(
            "pcscd does not run", "service.running", "problem", says: "does not run",
            command: "enable --now pcscd.socket",
            status: 6
        ) {
            try $0.setDriver(nil)
            $0.stopService()
        },
        Condition(
            "pcscd without its socket", "service.running", "problem", says: "without the socket",
            command: "restart pcscd.socket",
            status: 6
        ) { $0.service?.stop() },
        Condition(
            "a socket left behind", "service.running", "problem", says: "no program listens", command: "pcscd.socket",
            status: 6
        ) {
            try $0.setDriver(nil)
            $0.stopService(keepingSocket: true)
        },
        Condition("another protocol version", "service.version", "problem", says: "protocol version", status: 6) {
            // SCARD_E_SERVICE_STOPPED
            try $0.startService { $0.version = 0x8010_001E }
        },
        Condition(
            "packages of two versions", "service.version", "warning",
            says: "pcscd 1.9.9 (pcscd --version) is not of the version of libpcsclite 1.9.8 (dpkg)",
            command: "apt-get install pcscd", status: 0
        ) { try $0.writePackages(service: "2.0.3-1", library: "1.9.8-2") },
        Condition(
            "packages of two versions, and a pcscd that says nothing", "service.version", "warning",
            says: "pcscd 2.0.3 (dpkg) is not of the version of libpcsclite 1.9.9 (dpkg)",
            command: "apt-get install pcscd", status: 0
        ) {
            try $0.writeProgram("usr/sbin/pcscd", "exit 1")
            try $0.writePackages(service: "2.0.3-1", library: "1.9.9-2")
        },
        Condition(
            "another protocol version, without dpkg", "service.version", "problem",
            says: "pcscd 2.4.1 (pcscd --version) refuses the protocol version of this program's libpcsclite", status: 6
        ) {
            $0.remove("var/lib/dpkg")
            try $0.setPCSCD(version: "2.4.1", features: "polkit")
            try $0.startService { $0.version = 0x8010_001E }
        },
        Condition(
            "polkit denies", "service.access", "problem", says: "does not let this user use pcscd",
            command: "/etc/polkit-1/rules.d/", status: 6
        ) {
            try $0.setPolkit(pcsc: 1, card: 1, saying: "Not authorized.")
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "polkit denies in a session over SSH", "service.access", "problem", says: "over SSH", command: "plugdev",
            status: 6
        ) {
            $0.environment = ["SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22"]
            try $0.setPolkit(pcsc: 1, card: 1, saying: "Not authorized.")
            try $0.startService { $0.welcome = .hangUp }
        },
        Condition(
            "polkit denies in spite of a rule", "service.access", "problem", says: "polkit does not let",
            command: "sudo usermod -aG plugdev",
            status: 6
        ) {
            try $0.write("etc/polkit-1/rules.d/50-pcscd-plugdev.rules", "// org.debian.pcsc-lite.access_pcsc\n")
            try $0.setPolkit(pcsc: 1, card: 1, saying: "Not authorized.")
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "polkit wants a password", "service.access", "problem", says: "administrator's password",
            command: "/etc/polkit-1/rules.d/", status: 6
        ) {
            try $0.setPolkit(pcsc: 2, card: 2, saying: authenticationRequired)
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "polkit denies the cards alone", "service.access", "problem", says: "use the cards in its readers",
            command: "/etc/polkit-1/rules.d/", status: 6
        ) {
            try $0.setPolkit(pcsc: 0, card: 1, saying: "Not authorized.")
            // SCARD_W_SECURITY_VIOLATION
            try $0.startService { $0.connect = { _, _, _ in .status(0x8010_006A) } }
        },
        Condition(
            "polkit wants a password for the cards", "service.access", "problem", says: "administrator's password",
            command: "plugdev", status: 6
        ) {
            try $0.setPolkit(pcsc: 0, card: 2, saying: authenticationRequired)
            try $0.startService(readers: [FakePCSCD.Reader(DoctorMachine.readerName)])
        },
        Condition(
            "polkit does not run", "service.access", "problem", says: "polkit does not run", command: "start polkit",
            status: 6
        ) {
            try $0.setPolkit(
                pcsc: 127, card: 127,
                saying:
                    "Error checking for authorization org.debian.pcsc-lite.access_pcsc: GDBus.Error:org.freedesktop.DBus.Error.ServiceUnknown: The name org.freedesktop.PolicyKit1 was not provided by any .service files"
            )
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "no bus and no systemd", "service.access", "problem", says: "Could not connect", command: "dbus start",
            status: 6
        ) {
            $0.remove("run/systemd")
            try $0.setPolkit(
                pcsc: 126, card: 126,
                saying:
                    "Error getting authority: Error initializing authority: Could not connect: No such file or directory"
            )
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "polkit does not answer", "service.access", "problem", says: "no answer", command: "start polkit",
            status: 6
        ) {
            try $0.writeProgram("bin/pkcheck", "/bin/sleep 1000 & exec /bin/sleep 1000")
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "polkit is not installed", "service.access", "problem", says: "not installed", command: "install polkitd",
            status: 6
        ) {
            $0.remove("bin/pkcheck")
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "polkit does not know pcscd", "service.access", "problem", says: "org.debian.pcsc-lite.policy is missing",
            command: "install --reinstall pcscd", status: 6
        ) {
            try $0.setPolkit(pcsc: 127, card: 127, saying: unknownAction)
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "polkit allows and pcscd refuses", "service.access", "problem", says: "but pcscd refuses",
            command: "restart pcscd", status: 6
        ) { try $0.startService { $0.welcome = .reset } },
        Condition(
            "pcscd without polkit refuses", "service.access", "problem", says: "built without polkit, and refuses",
            command: "restart pcscd", status: 6
        ) {
            try $0.setPCSCD(version: "1.9.9", features: "")
            try $0.startService { $0.welcome = .reset }
        },
        Condition(
            "pcscd shows no reader", "service.reader", "problem", says: "does not show it", command: "restart pcscd",
            status: 5
        ) { try $0.startService(readers: []) },
        // libccid's ChangeLog, 1.6.2: “Give more time to initialize the ACS ACR122U”.
        Condition(
            "a libccid that does not wait", "service.reader", "problem",
            says: "libccid 1.5.2 gives an ACR122U too little time", command: "restart pcscd", status: 5
        ) { try $0.startService(readers: []) },
        // The reader and the card
        Condition(
            "polling switched off", "reader.polling", "problem", says: "(FF00500000) is 7F",
            command: "reader-probe reset", status: 5
        ) { try $0.startService { $0.answer(parameter: 0x7F) } },
        Condition(
            "type B switched off", "reader.polling", "warning", says: "(FF00500000) is FD",
            command: "reader-probe reset", status: 0
        ) { try $0.startService { $0.answer(parameter: 0xFD) } },
        Condition("a clone's firmware", "reader.firmware", "warning", says: "a clone", status: 0) {
            try $0.startService {
                $0.transmit = { _, command in
                    command.starts(with: [0xFF, 0xCA]) ? .data([0x04, 0x90, 0x00]) : .data(Array("ACR122U214".utf8))
                }
            }
        },
        Condition("no ACR122U's firmware", "reader.firmware", "warning", says: "not the firmware", status: 0) {
            try $0.startService {
                $0.transmit = { _, command in
                    command.starts(with: [0xFF, 0xCA]) ? .data([0x04, 0x90, 0x00]) : .data(Array("CCIDREADER".utf8))
                }
            }
        },
        Condition(
            "no commands to the reader", "reader.state", "warning", says: "takes no commands to itself", status: 0
        ) {
            try $0.startService {
                // SCARD_E_NOT_TRANSACTED
                $0.transmit = { _, command in
                    command.starts(with: [0xFF, 0xCA]) ? .data([0x04, 0x90, 0x00]) : .status(0x8010_0016)
                }
            }
        },
        Condition("no card", "card.exchange", "warning", says: "no card to try", status: 4) {
            try $0.startService(readers: [FakePCSCD.Reader(DoctorMachine.readerName)])
        },
        Condition("a mute card", "card.exchange", "problem", says: "the card does not answer", status: 5) {
            var reader = FakePCSCD.Reader(DoctorMachine.readerName)
            // SCARD_PRESENT and SCARD_SWALLOWED
            reader.state = 0x0C
            try $0.startService(readers: [reader])
        },
        Condition("a card that is held", "card.exchange", "problem", says: "another program holds the card", status: 5)
        {
            // SCARD_E_SHARING_VIOLATION, but not for direct connections (share mode 3)
            try $0.startService { $0.connect = { _, share, _ in .status(share == 3 ? 0 : 0x8010_000B) } }
        },
        Condition(
            "a card that leaves", "card.exchange", "problem", says: "the exchange with the card failed", status: 5
        ) {
            try $0.startService {
                $0.transmit = { _, command in
                    command.starts(with: [0xFF, 0xCA]) ? .status(0x8010_0016) : .data(Array("ACR122U207".utf8))
                }
            }
        },
    ]

    /// Those whose command changes files.
    static let curable = [
        "not authorized", "put to sleep", "not blacklisted", "the wrong modules blacklisted", "no udev rule",
        "a udev rule too late", "old firmware", "no escape",
    ]

    /// The rule that the doctor writes is one that it finds again, and which the shipped one is like.
    @Test func ruleIsWritten() async throws {
        let machine = try DoctorMachine()
        try machine.setPolkit(pcsc: 1, card: 1, saying: "Not authorized.")
        try machine.startService { $0.welcome = .reset }
        let finding = try #require(try await machine.doctor().diagnosis.findings.first { $0.check == "service.access" })
        try FileManager.default.createDirectory(
            atPath: "\(machine.root)/etc/polkit-1/rules.d", withIntermediateDirectories: true)
        try await machine.carryOut(try #require(finding.command))
        #expect(machine.read("etc/polkit-1/rules.d/50-pcscd-plugdev.rules").contains("polkit.Result.YES"))
        let again = try await machine.doctor().diagnosis.findings.first { $0.check == "service.access" }
        #expect(again?.command == "sudo usermod -aG plugdev \"$USER\"")
    }

    /// The command is carried out, on the test's machine and without sudo, and the doctor asked again.
    @Test(arguments: conditions.filter { curable.contains($0.testDescription) })
    func commandsMend(_ condition: Condition) async throws {
        let machine = try DoctorMachine()
        try condition.make(machine)
        let before = try await machine.doctor().diagnosis.findings.filter { $0.check == condition.check }
        try await machine.carryOut(try #require(before.first?.command))
        let after = try await machine.doctor().diagnosis.findings.filter { $0.check == condition.check }
        #expect(after.map(\.result) == ["ok"], "\(before) \(after)")
    }

    @Test(arguments: conditions)
    func finds(_ condition: Condition) async throws {
        let machine = try DoctorMachine()
        try condition.make(machine)
        let (outcome, diagnosis) = try await machine.doctor()
        let findings = diagnosis.findings.filter { $0.check == condition.check }
        let finding = try #require(findings.first { $0.result == condition.result }, "\(outcome)")
        #expect(finding.summary.contains(condition.says), "\(finding)")
        if let command = condition.command {
            #expect(finding.command?.contains(command) == true, "\(finding)")
            #expect(finding.advice == nil)
        } else {
            #expect(finding.command == nil && finding.advice?.isEmpty == false, "\(finding)")
        }
        #expect(outcome.status == condition.status && diagnosis.exitStatus == condition.status, "\(outcome)")
        // What is wrong is said once; what follows from it is skipped.
        let problems = diagnosis.findings.filter { $0.result == "problem" }.map(\.check)
        #expect(problems == (condition.result == "problem" ? [condition.check] : []))
        for command in diagnosis.findings.compactMap(\.command) {
            let syntax = try await Program.run(["sh", "-n"], input: command)
            #expect(syntax.status == 0, "\(command): \(syntax.error)")
        }
    }

    /// Where nothing is wrong: what is said, and who says so.
    static let fine: [Condition] = [
        Condition("a container with udev", "machine.kind", "ok", says: "a container (podman)", status: 0) {
            try $0.write("run/.containerenv", "")
            try $0.write("run/udev/control", "")
        },
        Condition("a container that says so", "machine.kind", "ok", says: "a container (podman)", status: 0) {
            $0.environment = ["container": "podman"]
            try $0.write("run/udev/control", "")
        },
        Condition(
            "a virtual machine", "machine.kind", "ok",
            says: "a virtual machine (QEMU): its reader is passed through, and gone whenever the host takes it back",
            status: 0
        ) { try $0.write("sys/class/dmi/id/sys_vendor", "QEMU\n") },
        Condition(
            "a libccid that does not wait, and has the reader all the same", "driver.installed", "ok",
            says:
                "ifd-ccid 1.5.2, which may miss an ACR122U after a boot (1.6.2 does not); --backend usb does not need it",
            status: 0
        ) { _ in },
        Condition(
            "polkit allows", "service.access", "ok", says: "polkit lets this user use pcscd and its cards", status: 0
        ) { _ in },
        Condition(
            "built without polkit", "service.access", "ok",
            says: "pcscd is built without polkit and admits every user", status: 0
        ) {
            try $0.setPCSCD(version: "1.9.9", features: "")
            try $0.setPolkit(pcsc: 1, card: 1)
        },
        Condition(
            "polkit switched off", "service.access", "ok",
            says: "pcscd runs with --disable-polkit and admits every user", status: 0
        ) {
            try $0.write("proc/812/cmdline", "/usr/sbin/pcscd\0--foreground\0--disable-polkit\0")
            try $0.setPolkit(pcsc: 1, card: 1)
        },
        Condition(
            "polkit of another service", "service.access", "ok", says: "this user may use pcscd and its cards",
            status: 0
        ) { try $0.setPolkit(pcsc: 1, card: 1) },
        Condition(
            "nobody to ask", "service.access", "ok",
            says: "this user may use pcscd; polkit could not be asked about cards", status: 4
        ) {
            $0.remove("bin/pkcheck")
            try $0.startService(readers: [FakePCSCD.Reader(DoctorMachine.readerName)])
        },
        Condition(
            "both versions", "service.version", "ok",
            says: "pcscd 1.9.9 (pcscd --version), libpcsclite 1.9.9 (dpkg)", status: 0
        ) { _ in },
        Condition(
            "no dpkg", "service.version", "ok",
            says:
                "pcscd 2.3.3 (pcscd --version) takes the protocol version of this program's libpcsclite (handshake)",
            status: 0
        ) {
            $0.remove("var/lib/dpkg")
            try $0.setPCSCD(version: "2.3.3", features: "polkit")
        },
        Condition(
            "neither dpkg nor a pcscd that tells", "service.version", "ok",
            says: "pcscd takes the protocol version of this program's libpcsclite (handshake)", status: 0
        ) {
            $0.remove("var/lib/dpkg")
            try $0.writeProgram("usr/sbin/pcscd", "echo 'pcsc-lite version of some kind'; kill -9 $$")
        },
    ]

    @Test(arguments: fine) func isFine(_ condition: Condition) async throws {
        let machine = try DoctorMachine()
        try condition.make(machine)
        let (outcome, diagnosis) = try await machine.doctor()
        let finding = diagnosis.findings.first { $0.check == condition.check }
        #expect(finding?.result == "ok" && finding?.summary == condition.says, "\(outcome)")
        #expect(outcome.status == condition.status, "\(outcome)")
    }

    /// A program that ends and leaves another behind with its output takes it along.
    @Test func leavesNoProgramBehind() async throws {
        let machine = try DoctorMachine()
        try machine.write("left/keep", "")
        chmod("\(machine.root)/left", 0o777)
        try machine.writeProgram("bin/pkcheck", "/bin/sleep 1000 & echo $! > '\(machine.root)/left/'$$; exit 1")
        _ = try await machine.doctor()
        let left = try FileManager.default.contentsOfDirectory(atPath: "\(machine.root)/left").filter { $0 != "keep" }
        #expect(left.count == 2)
        for file in left {
            let process = machine.read("left/\(file)").trimmingCharacters(in: .whitespacesAndNewlines)
            // Gone, or ended and not yet buried.
            let state = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8))?
                .split(separator: " ").dropFirst(2).first
            #expect(state == nil || state == "Z", "process \(process)")
        }
    }

    // MARK: The system's own pcscd, libccid and sysfs

    @Test(
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"),
        arguments: [("2.16", "ACR122U216"), ("2.07", "ACR122U207")])
    func aVirtualReaderThroughTheSystemStack(_ version: String, _ firmware: String) async throws {
        let outcome = try await Program.run(
            [
                Program.built("virtual-reader"), "--usb", "--card", "visa", "--firmware", version, "--",
                Program.built("reader-probe"), "doctor", "--json", "--timeout", "5",
            ])
        #expect(outcome.status == 0, "\(outcome)")
        let findings = try JSONDecoder().decode(DoctorMachine.Diagnosis.self, from: Data(outcome.output.utf8)).findings
        func summary(_ check: String) -> String? { findings.first { $0.check == check && $0.result == "ok" }?.summary }
        #expect(summary("usb.reader") == "ACS ACR122U PICC Interface, release \(version)")
        #expect(summary("usb.power") == "12 Mbit/s, 200 mA")
        #expect(summary("usb.genuine") != nil)
        #expect(summary("driver.reader")?.contains("ACS ACR122U PICC Interface") == true)
        #expect(summary("service.reader") == "ACS ACR122U PICC Interface 00 00")
        #expect(summary("reader.firmware") == firmware)
        #expect(summary("card.exchange")?.hasSuffix("FFCA000000 was answered with 9000 normal processing") == true)
    }

    // MARK: Without pcscd

    static let withoutService: [Condition] = [
        Condition(
            "pcscd holds it", "usb.holder", "problem", says: "pcscd (process 812)", command: "systemctl stop", status: 5
        ) { _ in },
        Condition(
            "the kernel holds it", "kernel.driver", "warning", says: "is sent away", command: "modprobe -r pn533_usb",
            status: 4
        ) { try $0.setDriver("pn533_usb") },
        Condition(
            "this user may not open it", "usb.access", "problem", says: "may not open", command: "plugdev", status: 6
        ) {
            try $0.setDriver(nil)
            $0.forbidNode()
        },
    ]

    /// There are no readers on this machine's own USB, or none that matter: the files alone are judged.
    @Test(arguments: withoutService)
    func findsWithoutService(_ condition: Condition) async throws {
        let machine = try DoctorMachine()
        try condition.make(machine)
        let (outcome, diagnosis) = try await machine.doctor("--backend", "usb")
        let finding = try #require(
            diagnosis.findings.first { $0.check == condition.check && $0.result == condition.result }, "\(outcome)")
        #expect(finding.summary.contains(condition.says), "\(finding)")
        if let command = condition.command { #expect(finding.command?.contains(command) == true, "\(finding)") }
        #expect(outcome.status == condition.status, "\(outcome)")
        #expect(!diagnosis.findings.contains { $0.check.hasPrefix("service.") || $0.check.hasPrefix("driver.") })
    }

    // MARK: How it speaks

    @Test func textSaysWhatTheJSONSays() async throws {
        let machine = try DoctorMachine()
        try machine.setDriver("pn533_usb")
        try machine.startService(readers: [])
        let outcome = try await Program.run(
            [Program.built("reader-probe"), "doctor", "--root", machine.root],
            environment: ["PCSCLITE_CSOCK_NAME": machine.socket])
        #expect(outcome.status == 5 && outcome.error.isEmpty)
        let lines = outcome.output.split(separator: "\n").map(String.init)
        let index = try #require(lines.firstIndex { $0.hasPrefix("problem   kernel.driver ") }, "\(outcome)")
        #expect(
            lines[index].hasSuffix(
                "1-2 072F:2200: the kernel's driver pn533_usb holds it; pcscd gets LIBUSB_ERROR_BUSY"))
        #expect(lines[index + 1].hasPrefix("          $ printf 'blacklist"))
        #expect(lines.last?.hasPrefix("No card can be read.") == true)
    }

    @Test(arguments: [["--timeout", "-1"], ["--backend", "serial"], ["visa"]])
    func refusesNonsense(_ arguments: [String]) async throws {
        let outcome = try await Program.run([Program.built("reader-probe"), "doctor"] + arguments)
        #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome)")
    }

    /// Whatever sysfs and the drivers' files hold.
    @Test(arguments: ["", "zz\n", "-1\n", "ffffffffffffffffff\n", String(repeating: "9", count: 70_000), "\u{1B}[2J"])
    func survivesNonsense(_ text: String) async throws {
        let machine = try DoctorMachine()
        for file in [
            "bcdDevice", "speed", "busnum", "devnum", "product", "serial", "descriptors", "power/control",
        ] { try machine.write("\(machine.device)/\(file)", text) }
        for file in ["proc/modules", "etc/libccid_Info.plist", "var/lib/dpkg/status", "proc/812/status"] {
            try machine.write(file, text)
        }
        let (outcome, _) = try await machine.doctor()
        #expect([0, 5, 6].contains(outcome.status), "\(outcome)")
        #expect(!outcome.output.contains("\u{1B}"))
    }
}

extension FakePCSCD.Behavior {
    /// Has the reader give `parameter` for its PICC operating parameter.
    fileprivate mutating func answer(parameter: UInt8) {
        let usual = transmit
        transmit = { way, command in
            command == [0xFF, 0x00, 0x50, 0x00, 0x00] ? .data([0x90, parameter]) : usual(way, command)
        }
    }
}

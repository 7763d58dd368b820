import CardReaders
import SmartCard
import SmartCardUSB
import ToolSupport

extension Check {
    /// All checks in the order of repair: from the plug to the card.
    static let all: [Check] = [
        surroundings, usbReader, usbPower, usbGenuine, usbQuirks, kernelDriver, kernelModules, usbHolder, usbAccess,
        usbRule, driverInstalled, driverReader, driverFirmware, driverEscape,
        serviceInstalled, serviceRunning, serviceVersion, serviceAccess, serviceAnswer, serviceReader,
        readerState, readerFirmware, readerPolling, cardExchange,
    ]

    /// The checks for readers without pcscd, which do not concern pcscd or its driver.
    static let withoutService: [Check] = [
        surroundings, usbReader, usbPower, usbGenuine, usbQuirks, kernelDriver, kernelModules, usbHolder, usbAccess,
        usbRule, usbList, readerState, readerFirmware, readerPolling, cardExchange,
    ]

    // MARK: The machine

    /// The mounts for a container: the bus, the device files, and udev's messages, which arrive only in the host's
    /// network.
    private static let mounts =
        "Start it with --device /dev/bus/usb --network host -v /run/udev:/run/udev:ro, or, for the host's pcscd, with -v /run/pcscd:/run/pcscd."

    static let surroundings = Check.machine("machine.kind") { machine in
        let surroundings = machine.surroundings
        if let container = surroundings.container {
            guard machine.usb?.isEmpty == false, !surroundings.hasUdev else { return .ok("a container (\(container))") }
            return .warning(
                "a container (\(container)) without udev's messages: readers that are plugged in later may not be noticed",
                .advice(mounts))
        }
        guard let hypervisor = surroundings.hypervisor else { return .ok("neither a container nor a virtual machine") }
        return .ok(
            machine.usb?.isEmpty == false
                ? "a virtual machine (\(hypervisor)): its reader is passed through, and gone whenever the host takes it back"
                : "a virtual machine (\(hypervisor)): it sees a reader when the host passes one through")
    }

    // MARK: The device

    static let usbReader = Check(id: "usb.reader") { machine in
        guard let devices = machine.usb else {
            return [
                machine.readersOfService.isEmpty
                    ? .problem(
                        "no USB is visible: /sys/bus/usb/devices is missing",
                        .advice(
                            machine.surroundings.container == nil
                                ? "In a container, pass /sys and /dev/bus/usb on to it, or pcscd's socket." : mounts),
                        exitStatus: 3)
                    : .skipped("no USB is visible")
            ]
        }
        guard !devices.isEmpty else {
            return [
                machine.readersOfService.isEmpty
                    ? .problem(
                        "no reader is plugged in",
                        .advice("Plug one in and see whether lsusb shows it; try another cable and port."),
                        exitStatus: 3)
                    : .ok("none on the USB; pcscd has others")
            ]
        }
        return devices.map { device in
            let subject = "\(device.place) \(device.idText)"
            let name = [device.manufacturer, device.product].compactMap(\.self).joined(separator: " ")
            if let name = MachineFacts.USBDevice.withoutCCID[device.id] {
                return .warning(
                    "\(name), which is not a CCID reader: pcscd and this program cannot drive it",
                    .advice("Use a CCID reader, such as the ACR122U.")
                ).about(subject)
            }
            return .ok("\(name.isEmpty ? "a CCID reader" : name), release \(device.releaseText)").about(subject)
        }
    }

    static let usbPower = Check.eachDevice("usb.power") { device, _ in
        let folder = "/sys/bus/usb/devices/\(device.place)"
        if !device.isAuthorized {
            return .problem(
                "the kernel was told not to use it", .command("echo 1 | sudo tee \(folder)/authorized"))
        }
        if !device.isConfigured {
            return .problem(
                "the kernel gives it no power: its port has less than the \(device.descriptors?.maximumPower ?? 0) mA it asks for",
                .advice("Plug it into the machine itself or into a hub with a power supply."))
        }
        if device.isOnUnpoweredHub, let power = device.descriptors?.maximumPower, power > 100 {
            return .warning(
                "it needs \(power) mA and is attached to a hub without a power supply, which has 100 mA for each port",
                .advice("Plug it into the machine itself or into a hub with a power supply."))
        }
        if device.isSuspendedWhenIdle {
            return .warning(
                "the kernel suspends it when idle; cards are then noticed late, or not at all",
                .command("echo on | sudo tee \(folder)/power/control"))
        }
        if let speed = device.speed, speed == "1.5" {
            return .warning(
                "it runs at 1.5 Mbit/s, too slow for a CCID reader: the cable or the port is bad",
                .advice("Use another cable and port."))
        }
        let power = device.descriptors.map { ", \($0.maximumPower) mA" } ?? ""
        return .ok("\(device.speed.map { "\($0) Mbit/s" } ?? "speed unknown")\(power)")
    }

    /// Compares descriptors with genuine ones: libccid's copy of ACS's (readers/ACR122U_PICC.txt), and acsccid#28.
    static let usbGenuine = Check.eachDevice("usb.genuine") { device, _ in
        guard device.isACR122U else { return .skipped("only ACR122U are looked at") }
        var signs: [String] = []
        if let number = device.serialNumber { signs.append("it has a serial number, “\(number)”") }
        if let name = device.manufacturer, name != "ACS" { signs.append("its maker is “\(name)”") }
        if let name = device.product, name != "ACR122U PICC Interface" { signs.append("its name is “\(name)”") }
        if let ccid = device.descriptors?.ccid {
            if ccid.slotCount != 1 { signs.append("it has \(ccid.slotCount) slots") }
            if ccid.features.rawValue != 0x0002_0040 {
                signs.append("dwFeatures is \(hexadecimal(ccid.features.rawValue, digits: 8))")
            }
            if ccid.maximumMessageLength != 271 {
                signs.append("its longest message has \(ccid.maximumMessageLength) bytes")
            }
        }
        return signs.isEmpty
            ? .ok("its descriptors are those of an ACR122U")
            : .warning(
                "not a genuine ACR122U: " + signs.joined(separator: ", "),
                .advice("It may work nevertheless; if it does not, compare it with a genuine one."))
    }

    static let usbQuirks = Check.eachDevice("usb.quirks") { device, _ in
        let quirks = device.quirks.map(\.rawValue).sorted()
        return .ok(quirks.isEmpty ? "none known" : "known and allowed for: " + quirks.joined(separator: ", "))
    }

    // MARK: Who has it

    private static let blacklist =
        #"printf 'blacklist %s\n' pn533_usb pn533 nfc | sudo tee /etc/modprobe.d/contactless-readers-blacklist.conf"#

    static let kernelDriver = Check.eachDevice("kernel.driver") { device, machine in
        guard let driver = device.interfaces.compactMap(\.driver).first(where: { $0 != "usbfs" && $0 != "usbhid" })
        else { return .ok("no kernel driver holds it") }
        // A module has its driver's name; NXP's adds _usb.
        let module = driver == "pn533" ? "pn533_usb" : driver
        let mending = Verdict.Mending.command(
            MachineFacts.USBDevice.ofPN533.contains(device.id) && module == "pn533_usb"
                ? "\(blacklist) && sudo modprobe -r pn533_usb" : "sudo modprobe -r \(module)")
        return machine.isWithoutService
            ? .warning("the kernel's driver \(driver) holds it, and is sent away while this program uses it", mending)
            : .problem("the kernel's driver \(driver) holds it; pcscd gets LIBUSB_ERROR_BUSY", mending)
    }

    static let kernelModules = Check.machine("kernel.modules") { machine in
        let kernel = machine.kernel
        let concerned = (machine.usb ?? []).contains { MachineFacts.USBDevice.ofPN533.contains($0.id) }
        if kernel.blacklisted.contains("pn533_usb") {
            return kernel.loaded.contains("pn533_usb")
                ? .warning("pn533_usb is blacklisted, but loaded already", .command("sudo modprobe -r pn533_usb"))
                : .ok("pn533_usb is blacklisted")
        }
        let half = kernel.blacklisted.intersection(["pn533", "nfc"]).sorted()
        let only = half.isEmpty ? "" : "; blacklisting \(half.joined(separator: " and ")) does not stop it"
        if kernel.loaded.contains("pn533_usb") {
            return .warning(
                "pn533_usb is loaded and takes an ACR122U when it is plugged in\(only)",
                .command("\(blacklist) && sudo modprobe -r pn533_usb"))
        }
        if kernel.hasPN533 == false { return .ok("this kernel has no pn533_usb") }
        guard concerned else { return .ok("pn533_usb is not loaded, and no reader here is one of its") }
        return .warning("pn533_usb may be loaded when the reader is plugged in again\(only)", .command(blacklist))
    }

    static let usbHolder = Check.eachDevice("usb.holder") { device, machine in
        let pcscd = device.holders.first { $0.name == "pcscd" }
        // A process that opens the node has not necessarily claimed an interface; upowerd and others only look.
        guard device.interfaces.contains(where: { $0.driver == "usbfs" }) else {
            return .ok(pcscd == nil ? "no program holds it" : "pcscd holds it")
        }
        if let pcscd {
            guard machine.isWithoutService else { return .ok("pcscd holds it") }
            return .problem(
                "pcscd (process \(pcscd.id)) holds it",
                .command(
                    machine.service.hasSystemd
                        ? "sudo systemctl stop pcscd.socket pcscd.service" : "sudo kill \(pcscd.id)"))
        }
        if let other = device.holders.first {
            return .problem("\(other.name) (process \(other.id)) holds it", .command("sudo kill \(other.id)"))
        }
        return machine.service.process != nil && machine.user.seesOnlyOwnProcesses && !machine.isWithoutService
            ? .ok("a process of another user holds it; pcscd, it seems")
            : .problem(
                "a process that is not to be seen from here holds it", .command("sudo lsof \(device.node.path)"))
    }

    /// Applies the rules to devices that are already plugged in.
    private static let triggerUdev = "sudo udevadm trigger --action=add --subsystem-match=usb"
    private static let reloadUdev = "sudo udevadm control --reload && \(triggerUdev)"

    static let usbAccess = Check.eachDevice("usb.access") { device, machine in
        let node = device.node
        guard node.exists else {
            return .problem(
                "\(node.path) is missing",
                .advice("In a container, pass /dev/bus/usb on to it; elsewhere see whether udev runs."))
        }
        let mode = String(node.mode, radix: 8)
        if let user = machine.service.processUser, machine.readersOfService.isEmpty, !machine.isWithoutService,
            !node.permits(user, in: machine.service.processGroups)
        {
            return .problem(
                "pcscd runs as user \(user) and may not open \(node.path) (mode \(mode))",
                .command("\(reloadUdev) && sudo systemctl restart pcscd"))
        }
        guard node.isAccessible else {
            let summary = "this user may not open \(node.path) (mode \(mode))"
            let mending: Verdict.Mending =
                machine.rules(for: device).isEmpty
                ? .advice("See usb.rule.")
                : .command("sudo usermod -aG plugdev \"$USER\" && \(triggerUdev)")
            return machine.isWithoutService
                ? .problem(summary, mending, exitStatus: 6) : .warning("\(summary): only pcscd can drive it", mending)
        }
        return .ok("\(node.path) may be read and written")
    }

    static let usbRule = Check.eachDevice("usb.rule") { device, machine in
        let (vendor, product) = device.attributes
        guard let first = machine.rules(for: device).first else {
            let rule =
                #"SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", ATTR{idVendor}=="\#(vendor)", ATTR{idProduct}=="\#(product)", GROUP="plugdev", MODE="0660", TAG+="uaccess""#
            let path = "/etc/udev/rules.d/70-contactless-reader-\(vendor)-\(product).rules"
            return .warning(
                "no udev rule lets users other than root drive it without pcscd",
                .command("echo '\(rule)' | sudo tee \(path) && \(reloadUdev)"))
        }
        // systemd's 73-seat-late.rules grants the access and ignores tags that are set later.
        let file = first.path.split(separator: "/").last.map(String.init) ?? ""
        guard first.usesACL, !first.setsMode, file >= "73" else { return .ok(first.path) }
        let name = "70-\(file.drop { $0.isNumber || $0 == "-" })"
        return .warning(
            "\(first.path) tags it with uaccess too late: only files before 73 count",
            .command("sudo mv \(first.path) /etc/udev/rules.d/\(name) && \(reloadUdev)"))
    }

    static let usbList = Check.machine("usb.list") { machine in
        if let refusal = machine.service.refusal {
            return .problem("libusb finds nothing: \(refusal)", .advice(refusal.hint))
        }
        return .ok("\(machine.readers.count) reader\(machine.readers.count == 1 ? "" : "s")")
    }

    // MARK: The driver

    static let driverInstalled = Check.machine("driver.installed") { machine in
        guard
            let driver = machine.drivers.first(where: { $0.name == "ifd-ccid" })
                ?? machine.drivers.first(where: { !$0.readers.isEmpty })
        else {
            return machine.readersOfService.isEmpty
                ? .problem(
                    "pcscd has no driver for CCID readers", .command("sudo apt-get install libccid"), exitStatus: 6)
                : .skipped("its drivers are not to be seen; pcscd lists readers")
        }
        let text = driver.name + (driver.version.map { " \($0)" } ?? "")
        let isConcerned = machine.impatientDriver != nil && machine.usb?.contains(where: \.isACR122U) == true
        return .ok(
            isConcerned
                ? "\(text), which may miss an ACR122U after a boot (1.6.2 does not); --backend usb does not need it"
                : text)
    }

    static let driverReader = Check.eachDevice("driver.reader") { device, machine in
        guard MachineFacts.USBDevice.withoutCCID[device.id] == nil else { return .skipped("no CCID reader") }
        guard machine.drivers.contains(where: { !$0.readers.isEmpty }) else { return .skipped("no driver to ask") }
        let drivers = machine.drivers.filter { $0.readers[device.id] != nil }
        if drivers.count > 1 {
            return .warning(
                "several drivers want it: \(drivers.map(\.name).joined(separator: ", "))",
                .advice("Keep one of them; libccid is the one this program is tested with."))
        }
        guard let driver = drivers.first else {
            return .problem(
                "\(machine.drivers.map(\.name).joined(separator: ", ")) does not know \(device.idText)",
                .command("sudo apt-get update && sudo apt-get install --only-upgrade libccid"))
        }
        return .ok("\(driver.name) knows it as “\(driver.readers[device.id] ?? "")”")
    }

    /// Returns the command that sets bits of ifdDriverOptions.
    private static func command(setting bits: UInt32, of driver: MachineFacts.Driver) -> Verdict.Mending {
        let value = hexadecimal(driver.options | bits)
        return .command(
            #"sudo sed -i --follow-symlinks '/<key>ifdDriverOptions</{n;s/0x[0-9A-Fa-f]*/0x\#(value)/}' \#(driver.path) && sudo systemctl restart pcscd"#
        )
    }

    /// libccid's list of bogus firmware (ifdhandler.c).
    static let driverFirmware = Check.eachDevice("driver.firmware") { device, machine in
        guard device.isACR122U else { return .skipped("only ACR122U are looked at") }
        guard device.release < 0x0206 else { return .ok("libccid accepts firmware \(device.releaseText)") }
        guard let driver = machine.drivers.first(where: { $0.name == "ifd-ccid" }) else {
            return .skipped("no libccid")
        }
        return driver.options & 0x04 != 0
            ? .ok("libccid is told to accept firmware \(device.releaseText)")
            : .problem(
                "libccid refuses firmware \(device.releaseText) as bogus (before 2.06)",
                command(setting: 0x04, of: driver))
    }

    static let driverEscape = Check.eachDevice("driver.escape") { device, machine in
        guard let driver = machine.drivers.first(where: { $0.readers[device.id] != nil }) else {
            return .skipped("no driver to ask")
        }
        if driver.options & 0x01 != 0 { return .ok("escape commands are permitted") }
        guard device.descriptors?.ccid?.exchangeLevel == .tpdu else {
            return .ok("escape commands are not permitted; commands to the reader go by SCardTransmit")
        }
        return .warning(
            "escape commands are not permitted, and a reader of TPDU level takes commands to itself in no other way",
            command(setting: 0x01, of: driver))
    }

    // MARK: The service

    static let serviceInstalled = Check.machine("service.installed") { machine in
        let service = machine.service
        if service.program != nil { return .ok("pcscd" + (service.version.map { " \($0)" } ?? "")) }
        return service.hasSocket
            ? .ok("pcscd is not installed here; its socket comes from elsewhere")
            : .problem("pcscd is not installed", .command("sudo apt-get install pcscd libccid"), exitStatus: 6)
    }

    static let serviceRunning = Check.machine("service.running") { machine in
        let service = machine.service
        switch (service.hasSocket, service.process, service.refusal?.kind) {
        case (false, nil, _):
            guard service.program != nil else { return .skipped("see service.installed") }
            return .problem(
                "pcscd does not run, and nothing starts it",
                .command(service.hasSystemd ? "sudo systemctl enable --now pcscd.socket" : "sudo pcscd"), exitStatus: 6)
        case (false, let process?, _):
            return .problem(
                "pcscd runs (process \(process.id)) without the socket \(service.socketPath)",
                .command(
                    service.hasSystemd
                        ? "sudo systemctl restart pcscd.socket pcscd" : "sudo kill \(process.id) && sudo pcscd"),
                exitStatus: 6)
        case (true, nil, .noService):
            return .problem(
                "no program listens on \(service.socketPath)",
                .command(service.hasSystemd ? "sudo systemctl restart pcscd.socket" : "sudo pcscd"), exitStatus: 6)
        case (true, let process?, _):
            let user = service.processUser.map(String.init) ?? "?"
            return .ok("process \(process.id)" + (user == "0" ? "" : ", as user \(user)"))
        case (true, nil, _):
            return .ok(service.isActivatedBySocket ? "started when its socket is used" : "its socket is there")
        }
    }

    /// Compares protocol versions: libpcsclite sends its version first, and pcscd refuses any other.
    static let serviceVersion = Check.machine("service.version") { machine in
        let service = machine.service
        let pcscd = "pcscd" + (service.version.map { " \($0) (\(service.versionSource))" } ?? "")
        let library = "libpcsclite" + (service.libraryVersion.map { " \($0) (dpkg)" } ?? "")
        if service.refusal?.kind == .versionMismatch {
            return .problem(
                "\(pcscd) refuses the protocol version of this program's \(library)",
                .advice("Use the libpcsclite that belongs to the pcscd that runs; in a container, the host's version."),
                exitStatus: 6)
        }
        if let version = service.version, let libraryVersion = service.libraryVersion, version != libraryVersion {
            return .warning(
                "\(pcscd) is not of the version of \(library)",
                .command("sudo apt-get update && sudo apt-get install pcscd libpcsclite1"))
        }
        if service.version != nil, service.libraryVersion != nil { return .ok("\(pcscd), \(library)") }
        return service.hasSocket && service.refusal == nil
            ? .ok("\(pcscd) takes the protocol version of this program's \(library) (handshake)")
            : .skipped("the versions are not to be seen")
    }

    /// Checks access to pcscd.  polkit decides, unless pcscd is built without it; its decision is known by now.
    static let serviceAccess = Check.machine("service.access") { machine in
        let service = machine.service
        guard service.hasSocket else { return .skipped("pcscd does not run") }
        let isRefused = service.refusal?.kind == .permissionDenied
        guard isRefused || service.refusal == nil else { return .skipped("see service.answer") }
        func problem(_ summary: String, _ command: String) -> Verdict {
            .problem(summary, .command(command), exitStatus: 6)
        }
        let switchedOff = service.isPolkitSwitchedOff ? "runs with --disable-polkit" : "is built without polkit"
        if service.usesPolkit == false {
            return isRefused
                ? problem("pcscd \(switchedOff), and refuses this user all the same", service.restart)
                : .ok("pcscd \(switchedOff) and admits every user")
        }
        // A user who may list readers may still be denied their cards.
        let object = isRefused ? "pcscd" : "the cards in its readers"
        switch service.decisions[isRefused ? .accessPCSC : .accessCard] {
        case .allowed:
            return isRefused
                ? problem("polkit lets this user use pcscd, but pcscd refuses", service.restart)
                : .ok("polkit lets this user use pcscd and its cards")
        case _ where machine.cardWasRead:
            return .ok("this user may use pcscd and its cards")
        case .denied:
            let session = machine.user.isRemote ? "over SSH" : "if no user is logged in at the machine"
            return problem("polkit does not let this user use \(object), as is usual \(session)", service.permission)
        case .needsPassword:
            return problem(
                "polkit lets this user use \(object) with an administrator's password, which pcscd does not ask for",
                service.permission)
        case .unknownAction where isRefused:
            return problem(
                "polkit does not know pcscd's actions: org.debian.pcsc-lite.policy is missing",
                "sudo apt-get install --reinstall pcscd && \(service.restart)")
        case .unreachable(let words) where isRefused:
            return problem(
                "polkit does not run, so pcscd admits nobody: \(words)",
                service.hasSystemd ? "sudo systemctl start polkit" : "sudo service dbus start")
        case nil where isRefused:
            return problem(
                "polkit is not installed, so pcscd admits nobody", "sudo apt-get install polkitd")
        case .unknownAction, .unreachable, nil:
            return .ok("this user may use pcscd; polkit could not be asked about cards")
        }
    }

    static let serviceAnswer = Check.machine("service.answer") { machine in
        let service = machine.service
        guard service.hasSocket else { return .skipped("pcscd does not run") }
        guard let refusal = service.refusal else {
            return .ok(plural(machine.readersOfService.count, "reader"))
        }
        switch refusal.kind {
        case .versionMismatch: return .skipped("see service.version")
        case .permissionDenied: return .skipped("see service.access")
        case .noService where service.process == nil: return .skipped("see service.running")
        default:
            return .problem("pcscd does not answer: \(refusal)", .command(service.restart), exitStatus: 6)
        }
    }

    static let serviceReader = Check.machine("service.reader") { machine in
        guard machine.service.hasSocket, machine.service.refusal == nil else {
            return .skipped("pcscd does not answer")
        }
        let devices = (machine.usb ?? []).filter { MachineFacts.USBDevice.withoutCCID[$0.id] == nil }
        let readers = machine.readersOfService
        guard readers.isEmpty else { return .ok(readers.map(\.name).joined(separator: "; ")) }
        guard !devices.isEmpty else { return .skipped("no reader is plugged in") }
        // An earlier finding explains the failure: report it only once.
        let above = [kernelDriver, usbPower, usbAccess, usbHolder, driverInstalled, driverReader, driverFirmware]
        if let cause = above.first(where: { $0.finds(.problem, machine) }) {
            return .skipped("pcscd shows no reader; see \(cause.id)")
        }
        let summary = "a reader is plugged in, and pcscd does not show it"
        guard let version = machine.impatientDriver, devices.contains(where: \.isACR122U) else {
            return .problem(summary, .command(machine.service.restart))
        }
        return .problem(
            "\(summary): after a boot libccid \(version) gives an ACR122U too little time, as 1.6.2 does not; --backend usb does without pcscd",
            .command(machine.service.restart))
    }

    // MARK: The reader and the card

    static let readerState = Check.eachReader("reader.state") { reader, _ in
        if let failure = reader.failure { return .problem("\(failure)", .advice(failure.hint)) }
        if let failure = reader.routeFailure {
            return .warning("it takes no commands to itself: \(failure)", .advice(failure.hint))
        }
        return .ok(reader.route.map { "takes commands to itself by \($0)" } ?? "answers")
    }

    /// Compares versions: ACS's firmware reports `ACR122U216` for a bcdDevice of 2.16.
    static let readerFirmware = Check.eachReader("reader.firmware") { reader, machine in
        guard let firmware = reader.firmware else { return .skipped(unasked(reader, .firmware)) }
        guard reader.model?.commands == .pseudoAPDUs else { return .ok(firmware) }
        guard firmware.hasPrefix("ACR122U"), firmware.utf8.count == 10,
            let version = UInt16(firmware.dropFirst(7), radix: 16)
        else {
            return .warning(
                "not the firmware of an ACR122U: “\(firmware)”",
                .advice("It is a clone or another model; if it misbehaves, compare it with a genuine one."))
        }
        let devices = (machine.usb ?? []).filter(\.isACR122U)
        guard devices.count == 1, let device = devices.first, device.release != version else { return .ok(firmware) }
        return .warning(
            "the firmware says \(firmware), the USB descriptor \(device.releaseText): a clone",
            .advice("It may work nevertheless; if it does not, compare it with a genuine one."))
    }

    /// Checks polling.  A program that ended too soon, and libnfc in any case (libnfc#502), leave the operating
    /// parameter changed.
    static let readerPolling = Check.eachReader("reader.polling") { reader, machine in
        guard let polling = reader.polling else { return .skipped(unasked(reader, .automaticPolling)) }
        let others = machine.readers.count > 1 ? " --reader '\(reader.name)'" : ""
        let reset = "reader-probe reset\(reader.isOfService ? "" : " --backend usb")\(others)"
        guard polling.isOn else { return .problem("it does not look for cards: \(polling.told)", .command(reset)) }
        guard polling.findsPaymentCards != false else {
            return .warning("it does not see every card: \(polling.told)", .command(reset))
        }
        return .ok("it looks for cards by itself")
    }

    /// Explains why a reader was not asked.
    private static func unasked(_ reader: MachineFacts.Reader, _ function: Model.Function) -> String {
        guard let model = reader.model else { return "its commands are not known" }
        return model.functions[function] == nil
            ? "no command for the \(function.rawValue) of the \(model.name) is known" : "it did not answer"
    }

    static let cardExchange = Check(id: "card.exchange") { machine in
        let verdicts: [Verdict] = machine.readers.compactMap { reader in
            switch reader.exchange {
            case nil: nil
            case .answered(let command, let status, let technology):
                .ok("\(technology): \(command) was answered with \(status)").about(reader.name)
            case .failed(let error) where error.kind == .permissionDenied && serviceAccess.finds(.problem, machine):
                .skipped("see service.access").about(reader.name)
            case .failed(let error): .problem("\(error)", .advice(error.hint)).about(reader.name)
            }
        }
        guard verdicts.isEmpty else { return verdicts }
        return machine.readers.isEmpty
            ? [.skipped("no reader")]
            : [.warning("no card to try", .advice("Put a card on the reader and run reader-probe doctor again."))]
    }
}

extension MachineFacts.Service {
    /// True if pcscd uses polkit; nil if pcscd does not report it.
    var usesPolkit: Bool? { isPolkitSwitchedOff ? false : features.map { $0.contains("polkit") } }

    fileprivate var restart: String {
        hasSystemd ? "sudo systemctl restart pcscd" : "sudo kill $(pidof pcscd) && sudo pcscd"
    }

    /// The shipped rule, if no other exists, and the group that it names.
    fileprivate var permission: String {
        let join = "sudo usermod -aG plugdev \"$USER\""
        let rule =
            #"polkit.addRule(function (a, s) { if (a.id.indexOf("org.debian.pcsc-lite.access_") == 0 && s.isInGroup("plugdev")) return polkit.Result.YES; });"#
        return polkitRules.isEmpty
            ? "echo '\(rule)' | sudo tee /etc/polkit-1/rules.d/50-pcscd-plugdev.rules && \(join) && sudo systemctl restart polkit"
            : join
    }
}

extension MachineFacts {
    /// The version of a libccid before 1.6.2, which “gives more time to initialize the ACS ACR122U” (its ChangeLog).
    fileprivate var impatientDriver: String? {
        guard let version = drivers.first(where: { $0.name == "ifd-ccid" })?.version else { return nil }
        let numbers = version.split(separator: ".").map { Int($0) ?? 0 }
        return numbers.lexicographicallyPrecedes([1, 6, 2]) ? version : nil
    }

    /// Returns the udev rules that name a device and grant access to it.
    fileprivate func rules(for device: USBDevice) -> [(path: String, usesACL: Bool, setsMode: Bool)] {
        let (vendor, product) = device.attributes
        return udevRules.compactMap { path, lines in
            let lines = lines.filter { !$0.hasPrefix("#") }
            guard lines.contains(where: { $0.contains("\"\(vendor)\"") && $0.lowercased().contains(product) }) else {
                return nil
            }
            let usesACL = lines.contains { $0.contains("uaccess") }
            let setsMode = lines.contains { $0.contains("MODE=") || $0.contains("MODE:=") || $0.contains("GROUP=") }
            return usesACL || setsMode ? (path, usesACL, setsMode) : nil
        }
    }
}

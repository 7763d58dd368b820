import Foundation
import SmartCard

extension MachineFacts {
    /// Collects the facts in a machine's files.
    init(_ files: FileTree, environment: [String: String]) {
        user.id = geteuid()
        user.isRemote = !environment["SSH_CONNECTION", default: ""].isEmpty
        surroundings = Surroundings(files, environment: environment)
        kernel = Kernel(files)
        udevRules = ["/etc/udev/rules.d", "/run/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d"].flatMap {
            folder in
            files.names(in: folder).filter { $0.hasSuffix(".rules") }.map {
                ("\(folder)/\($0)", files.lines("\(folder)/\($0)"))
            }
        }
        drivers = files.names(in: Driver.folder).compactMap { Driver(files, bundle: "\(Driver.folder)/\($0)") }
        let processes = files.names(in: "/proc").compactMap(Int.init)
        service = Service(files, processes: processes, environment: environment)
        guard files.exists("/sys/bus/usb/devices") else { return }
        var devices = files.names(in: "/sys/bus/usb/devices").filter { $0.first?.isNumber == true && !$0.contains(":") }
            .compactMap { USBDevice(files, place: $0) }.filter(\.isReader)
        if !devices.isEmpty {
            let (holders, isComplete) = Self.holders(of: Set(devices.map(\.node.path)), among: processes, files)
            for index in devices.indices { devices[index].holders = holders[devices[index].node.path] ?? [] }
            user.seesOnlyOwnProcesses = !isComplete
        }
        usb = devices
    }

    /// Finds the processes that have opened device nodes, as far as this user may see.
    private static func holders(
        of nodes: Set<String>, among processes: [Int], _ files: FileTree
    ) -> (found: [String: [Process]], isComplete: Bool) {
        var found: [String: [Process]] = [:]
        var isComplete = true
        for id in processes {
            let folder = "/proc/\(id)/fd"
            guard files.canList(folder) else {
                isComplete = false
                continue
            }
            let open = Set(files.names(in: folder).compactMap { files.link("\(folder)/\($0)") })
            for node in open.intersection(nodes) { found[node, default: []].append(Process(files, id)) }
        }
        return (found, isComplete)
    }
}

extension MachineFacts.Process {
    fileprivate init(_ files: FileTree, _ id: Int) {
        self.id = id
        name = files.text("/proc/\(id)/comm") ?? "?"
    }
}

extension MachineFacts.USBDevice {
    fileprivate init?(_ files: FileTree, place: String) {
        let folder = "/sys/bus/usb/devices/\(place)"
        func text(_ name: String) -> String? { files.text("\(folder)/\(name)") }
        guard let vendor: UInt16 = files.hexadecimal("\(folder)/idVendor"),
            let product: UInt16 = files.hexadecimal("\(folder)/idProduct")
        else { return nil }
        self.place = place
        (vendorID, productID) = (vendor, product)
        release = files.hexadecimal("\(folder)/bcdDevice") ?? 0
        manufacturer = text("manufacturer")
        self.product = text("product")
        serialNumber = text("serial")
        descriptors = files.bytes("\(folder)/descriptors", limit: 65_536).flatMap(USBDescriptors.init)
        // The interfaces of 1-2 are 1-2:1.0, 1-2:1.1, …
        interfaces = files.names(in: "/sys/bus/usb/devices").filter { $0.hasPrefix("\(place):") }.compactMap { name in
            let interface = "/sys/bus/usb/devices/\(name)"
            guard let number: Int = files.hexadecimal("\(interface)/bInterfaceNumber"),
                let kind: UInt8 = files.hexadecimal("\(interface)/bInterfaceClass")
            else { return nil }
            let driver = files.link("\(interface)/driver")?.split(separator: "/").last.map(String.init)
            return MachineFacts.Interface(number: number, interfaceClass: kind, driver: driver)
        }
        speed = text("speed")
        isAuthorized = text("authorized") != "0"
        isConfigured = !files.exists("\(folder)/bConfigurationValue") || text("bConfigurationValue") != nil
        isSuspendedWhenIdle = text("power/control") == "auto"
        // 1-1.2 is attached to 1-1; bit 6 of its bmAttributes indicates its own power supply.
        let hub = place.lastIndex(of: ".").map { String(place[..<$0]) }
        isOnUnpoweredHub =
            hub.flatMap { files.hexadecimal("/sys/bus/usb/devices/\($0)/bmAttributes") as UInt8? }
            .map { $0 & 0x40 == 0 } ?? false
        let (bus, device) = (text("busnum").flatMap { Int($0) } ?? 0, text("devnum").flatMap { Int($0) } ?? 0)
        channel = UInt16(truncatingIfNeeded: bus << 8 | device & 0xFF)
        let path = "/dev/bus/usb/\(decimal(bus))/\(decimal(device))"
        if let status = files.status(path) {
            node = MachineFacts.Node(
                path: path, exists: true, isAccessible: files.isAccessible(path), mode: UInt32(status.st_mode) & 0o777,
                owner: status.st_uid, group: status.st_gid)
        } else {
            node = MachineFacts.Node(path: path)
        }
        holders = []
    }

    /// True for a reader that this tool supports.
    fileprivate var isReader: Bool { !ccidInterfaces.isEmpty || Self.withoutCCID[id] != nil || isACR122U }
}

private func decimal(_ number: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, 3 - text.count)) + text
}

extension MachineFacts.Surroundings {
    /// Detects virtual machines and containers as systemd-detect-virt(1) does, from firmware names and files of
    /// container managers.  podman hides its file in a container that may only read its files; it still sets `container`.
    fileprivate init(_ files: FileTree, environment: [String: String]) {
        let hypervisors = [
            ("QEMU", "QEMU"), ("KVM", "KVM"), ("VirtualBox", "VirtualBox"), ("VMware", "VMware"), ("Xen", "Xen"),
            ("Virtual Machine", "Hyper-V"), ("Parallels", "Parallels"), ("bhyve", "bhyve"),
        ]
        let names = ["sys_vendor", "product_name"].compactMap { files.text("/sys/class/dmi/id/\($0)") }
        hypervisor = hypervisors.first { mark, _ in names.contains { $0.contains(mark) } }?.1
        let managers = ["docker", "lxc", "oci", "podman", "systemd-nspawn"]
        container =
            files.exists("/.dockerenv")
            ? "docker"
            : files.exists("/run/.containerenv")
                ? "podman" : files.text("/run/systemd/container") ?? managers.first { $0 == environment["container"] }
        hasUdev = files.exists("/run/udev/control")
    }
}

extension MachineFacts.Kernel {
    fileprivate init(_ files: FileTree) {
        func name(_ text: Substring) -> String { text.replacingOccurrences(of: "-", with: "_") }
        loaded = Set(files.lines("/proc/modules").compactMap { $0.split(separator: " ").first.map(name) })
        for folder in ["/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"] {
            for file in files.names(in: folder) where file.hasSuffix(".conf") {
                for line in files.lines("\(folder)/\(file)") {
                    let words = line.split(whereSeparator: \.isWhitespace)
                    switch (words.first, words.count) {
                    case ("blacklist", 2...): blacklisted.insert(name(words[1]))
                    case ("install", 3...) where words[2].hasSuffix("/true") || words[2].hasSuffix("/false"):
                        blacklisted.insert(name(words[1]))
                    default: break
                    }
                }
            }
        }
        for word in (files.text("/proc/cmdline") ?? "").split(whereSeparator: \.isWhitespace) {
            let parts = word.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, ["modprobe.blacklist", "module_blacklist"].contains(parts[0]) else { continue }
            blacklisted.formUnion(parts[1].split(separator: ",").map(name))
        }
        let modules = "/lib/modules/\(files.text("/proc/sys/kernel/osrelease") ?? "")/modules.dep"
        hasPN533 = files.bytes(modules, limit: 1 << 24).map { Data($0).range(of: Data("/pn533_usb.ko".utf8)) != nil }
    }
}

extension MachineFacts.Driver {
    fileprivate static let folder = "/usr/lib/pcsc/drivers"

    private struct InfoPlist: Decodable {
        var version: String?
        var ifdDriverOptions: String?
        var ifdVendorID: [String]?
        var ifdProductID: [String]?
        var ifdFriendlyName: [String]?

        private enum CodingKeys: String, CodingKey {
            case version = "CFBundleShortVersionString"
            case ifdDriverOptions, ifdVendorID, ifdProductID, ifdFriendlyName
        }
    }

    fileprivate init?(_ files: FileTree, bundle: String) {
        let path = "\(bundle)/Contents/Info.plist"
        guard let bytes = files.bytes(path),
            let list = try? PropertyListDecoder().decode(InfoPlist.self, from: Data(bytes))
        else { return nil }
        func number(_ text: String) -> UInt32? {
            UInt32(text.hasPrefix("0x") ? text.dropFirst(2) : text[...], radix: 16)
        }
        self.path = files.link(path).flatMap { $0.hasPrefix("/") ? $0 : nil } ?? path
        name = bundle.split(separator: "/").last.map { $0.replacingOccurrences(of: ".bundle", with: "") } ?? ""
        version = list.version
        options = list.ifdDriverOptions.flatMap(number) ?? 0
        var readers: [UInt32: String] = [:]
        let ids = zip(list.ifdVendorID ?? [], list.ifdProductID ?? [])
        for ((vendor, product), name) in zip(ids, list.ifdFriendlyName ?? []) {
            if let vendor = number(vendor), let product = number(product), vendor <= 0xFFFF, product <= 0xFFFF {
                readers[vendor << 16 | product] = name
            }
        }
        self.readers = readers
    }
}

extension MachineFacts.Service {
    fileprivate init(_ files: FileTree, processes: [Int], environment: [String: String]) {
        program = ["/usr/sbin/pcscd", "/usr/bin/pcscd", "/usr/local/sbin/pcscd"].first(where: files.exists)
        let packages = Data(files.bytes("/var/lib/dpkg/status", limit: 1 << 25) ?? [])
        version = Self.version(of: "pcscd", in: packages)
        versionSource = "dpkg"
        libraryVersion = Self.version(of: "libpcsclite1", in: packages)
        if let id = processes.first(where: { files.text("/proc/\($0)/comm") == "pcscd" }) {
            process = MachineFacts.Process(files, id)
            isPolkitSwitchedOff =
                files.text("/proc/\(id)/cmdline")?.split(separator: "\0").contains("--disable-polkit") == true
            for line in files.lines("/proc/\(id)/status") {
                let words = line.split(whereSeparator: \.isWhitespace)
                let numbers = words.dropFirst().compactMap { UInt32($0) }
                switch words.first {
                // Real, effective, saved, file system user.
                case "Uid:": processUser = numbers.dropFirst().first
                case "Gid:": processGroups.formUnion(numbers.dropFirst().prefix(1))
                case "Groups:": processGroups.formUnion(numbers)
                default: break
                }
            }
        }
        socketPath = environment["PCSCLITE_CSOCK_NAME"] ?? files.place("/run/pcscd/pcscd.comm")
        hasSocket = FileManager.default.fileExists(atPath: socketPath)
        isActivatedBySocket = [
            "/etc/systemd/system/sockets.target.wants/pcscd.socket", "/run/systemd/units/invocation:pcscd.socket",
        ].contains { files.link($0) != nil }
        hasSystemd = files.exists("/run/systemd/system")
        polkitRules = ["/etc/polkit-1/rules.d", "/usr/share/polkit-1/rules.d"].flatMap { folder in
            files.names(in: folder).map { "\(folder)/\($0)" }.filter {
                files.text($0)?.contains("org.debian.pcsc-lite") == true
            }
        }
    }

    /// Returns the upstream part of a package's version in dpkg's status file: `1.9.9` of `1.9.9-2`.
    private static func version(of package: String, in status: Data) -> String? {
        guard let start = status.range(of: Data("Package: \(package)\n".utf8)) else { return nil }
        let rest = status[start.upperBound...]
        let stanza = rest[..<(rest.range(of: Data("\n\n".utf8))?.lowerBound ?? rest.endIndex)]
        let lines = String(decoding: stanza, as: UTF8.self).split(separator: "\n")
        guard lines.contains("Status: install ok installed"),
            let version = lines.first(where: { $0.hasPrefix("Version: ") })?.dropFirst(9)
        else { return nil }
        let upstream = version.split(separator: ":").last?.prefix { $0 != "-" && $0 != "+" }
        return upstream.map(String.init)
    }
}

import Glibc

/// The kernel's view of a device.
enum Sysfs {
    /// The devices on the bus, including hubs; nil without sysfs.
    static var devices: Set<USBAddress>? {
        guard let folder = opendir("/sys/bus/usb/devices") else { return nil }
        defer { closedir(folder) }
        var found: Set<USBAddress> = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { start in
                start.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            // A name with a colon is an interface.
            guard !name.hasPrefix("."), !name.contains(":") else { continue }
            let numbers = ["busnum", "devnum"].map { text("/sys/bus/usb/devices/\(name)/\($0)").flatMap { UInt8($0) } }
            if let bus = numbers[0], let device = numbers[1] { found.insert(USBAddress(bus: bus, device: device)) }
        }
        return found
    }

    /// Reads a line of text; nil if there is none.
    ///
    /// - Parameter interface: the interface that has the attribute; nil for the device.
    static func attribute(_ name: String, of device: USBDevice, interface: UInt8? = nil) -> String? {
        guard var folder = folder(device) else { return nil }
        if let interface { folder += ":\(device.configuration).\(interface)" }
        return text("\(folder)/\(name)")
    }

    /// Reads the first line of a file and collapses its spaces.
    private static func text(_ path: String) -> String? {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = Glibc.read(file, &buffer, buffer.count)
        let text = String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
        let line = text.split(whereSeparator: \.isNewline).first ?? ""
        let words = line.split(whereSeparator: \.isWhitespace)
        return words.isEmpty ? nil : words.joined(separator: " ")
    }

    /// Returns the kernel driver of the interface.
    static func driver(of device: USBDevice, interface: UInt8) -> String? {
        guard let folder = folder(device) else { return nil }
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = buffer.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map {
                readlink("\(folder):\(device.configuration).\(interface)/driver", $0, bytes.count)
            } ?? 0
        }
        guard count > 0 else { return nil }
        return String(decoding: buffer.prefix(count), as: UTF8.self).split(separator: "/").last.map(String.init)
    }

    private static func folder(_ device: USBDevice) -> String? {
        guard !device.ports.isEmpty else { return nil }
        return "/sys/bus/usb/devices/\(device.place)"
    }
}

import SmartCardSimulator

/// The kernel's description of a full-speed device at the second port of bus 1, in sysfs and udev, as umockdev reads
/// it.
///
/// `E` is a udev property, `A` an attribute, and `H` an attribute in hexadecimal (umockdev-record(1)).
struct SysfsDescription {
    let path = "/sys/devices/usb1/1-2"
    /// The device file.
    let node: String
    /// The device and, apart from it, its interfaces, each with its path.
    let device: String
    let interfaces: [(path: String, text: String)]

    /// - Parameter number: the address on the bus, 1 to 127.
    init(_ usb: any SoftwareUSBDevice, number: Int) {
        // A descriptor that is too short is shown with zeros, as the bytes of it would be read.
        let d = usb.deviceDescriptor + [UInt8](repeating: 0, count: 18)
        let c = usb.configurationDescriptor + [UInt8](repeating: 0, count: 18)
        func word(_ offset: Int) -> Int { Int(d[offset]) | Int(d[offset + 1]) << 8 }
        func string(_ name: String, _ index: UInt8) -> [String] {
            usb.strings.indices.contains(Int(index) - 1) ? ["A: \(name)=\(usb.strings[Int(index) - 1])\\n"] : []
        }
        let name = "bus/usb/001/\(decimal(number, 3))"
        let product = "PRODUCT=\(hex(word(8)))/\(hex(word(10)))/\(hex(word(12)))"
        let type = "TYPE=\(d[4])/\(d[5])/\(d[6])"

        node = "/dev/\(name)"
        device = Self.text(
            [
                "P: /devices/usb1/1-2",
                "N: \(name)",
                "E: SUBSYSTEM=usb",
                "E: DEVTYPE=usb_device",
                "E: DEVNAME=/dev/\(name)",
                "E: DRIVER=usb",
                "E: \(product)",
                "E: \(type)",
                "E: BUSNUM=001",
                "E: DEVNUM=\(decimal(number, 3))",
                "E: MAJOR=189",
                "E: MINOR=\(number - 1)",
                "A: dev=189:\(number - 1)\\n",
                "A: busnum=1\\n",
                "A: devnum=\(number)\\n",
                "A: devpath=2\\n",
                "A: maxchild=0\\n",
                "A: speed=12\\n",
                "A: version= \(hex(d[3])).\(hex(d[2], 2))\\n",
                "A: bDeviceClass=\(hex(d[4], 2))\\n",
                "A: bDeviceSubClass=\(hex(d[5], 2))\\n",
                "A: bDeviceProtocol=\(hex(d[6], 2))\\n",
                "A: bMaxPacketSize0=\(d[7])\\n",
                "A: idVendor=\(hex(word(8), 4))\\n",
                "A: idProduct=\(hex(word(10), 4))\\n",
                "A: bcdDevice=\(hex(word(12), 4))\\n",
                "A: bNumConfigurations=\(d[17])\\n",
                "A: bNumInterfaces= \(c[4])\\n",
                "A: bConfigurationValue=\(c[5])\\n",
                "A: bmAttributes=\(hex(c[7], 2))\\n",
                "A: bMaxPower=\(Int(c[8]) * 2)mA\\n",
                "H: descriptors=\((usb.deviceDescriptor + usb.configurationDescriptor).map { hex($0, 2) }.joined())",
            ] + string("manufacturer", d[14]) + string("product", d[15]) + string("serial", d[16]))
        interfaces = Self.interfaceDescriptors(usb.configurationDescriptor).map { i in
            let name = "1-2/1-2:1.\(i[2])"
            return (
                "/sys/devices/usb1/\(name)",
                Self.text(
                    [
                        "P: /devices/usb1/\(name)",
                        "E: SUBSYSTEM=usb",
                        "E: DEVTYPE=usb_interface",
                        "E: \(product)",
                        "E: \(type)",
                        "E: INTERFACE=\(i[5])/\(i[6])/\(i[7])",
                        "A: bInterfaceNumber=\(hex(i[2], 2))\\n",
                        "A: bAlternateSetting= \(i[3])\\n",
                        "A: bNumEndpoints=\(hex(i[4], 2))\\n",
                        "A: bInterfaceClass=\(hex(i[5], 2))\\n",
                        "A: bInterfaceSubClass=\(hex(i[6], 2))\\n",
                        "A: bInterfaceProtocol=\(hex(i[7], 2))\\n",
                    ] + string("interface", i[8]))
            )
        }
    }

    /// Returns the interface descriptors of a configuration (USB 2.0, 9.6.5), nine bytes each.
    private static func interfaceDescriptors(_ configuration: [UInt8]) -> [[UInt8]] {
        var rest = configuration[...]
        var found: [[UInt8]] = []
        while let length = rest.first, length >= 2, rest.count >= length {
            let descriptor = Array(rest.prefix(Int(length)))
            if descriptor[1] == 0x04, descriptor.count == 9 { found.append(descriptor) }
            rest = rest.dropFirst(Int(length))
        }
        return found
    }

    private static func text(_ lines: [String]) -> String { lines.joined(separator: "\n") + "\n" }
}

private func hex(_ value: some BinaryInteger, _ digits: Int = 1) -> String { zeros(String(value, radix: 16), digits) }
private func decimal(_ value: Int, _ digits: Int) -> String { zeros(String(value), digits) }

private func zeros(_ number: String, _ digits: Int) -> String {
    String(repeating: "0", count: max(0, digits - number.utf8.count)) + number
}

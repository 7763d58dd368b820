import Glibc

/// The messages of USB/IP, version 1.1.1 (Linux, Documentation/usb/usbip_protocol.rst).  All numbers are big endian.
///
/// A connection begins with one request.  After an import it carries commands and replies, whose headers have 48 bytes.
enum USBIP {
    static let version: UInt16 = 0x0111

    /// The request that begins a connection: version, code, an unused status, and for an import the bus ID.
    enum RequestCode: UInt16 {
        case importDevice = 0x8003
        case deviceList = 0x8005

        /// The number of bytes after the first eight.
        var bodySize: Int { self == .importDevice ? USBIP.busIDSize : 0 }
    }

    static let requestHeaderSize = 8
    static let busIDSize = 32
    static let commandHeaderSize = 48

    /// The status of a reply (Linux, tools/usb/usbip/libsrc/usbip_common.h).
    enum RequestStatus: UInt32 {
        case success = 0
        case busy = 2
        case noDevice = 4
    }

    // MARK: Requests

    /// - Returns: nil for another version or an unknown code.
    static func request(_ header: [UInt8]) -> RequestCode? {
        var fields = Fields(header)
        guard fields.uint16() == version, let code = fields.uint16() else { return nil }
        return RequestCode(rawValue: code)
    }

    /// The bus ID of an import: up to the first zero byte.
    static func busID(_ body: [UInt8]) -> String { String(decoding: body.prefix { $0 != 0 }, as: UTF8.self) }

    /// OP_REP_DEVLIST.
    static func deviceList(_ devices: [DeviceRecord]) -> [UInt8] {
        replyHeader(.deviceList, .success) + bytes(UInt32(truncatingIfNeeded: devices.count))
            + devices.flatMap { $0.bytes + $0.interfaceBytes }
    }

    /// OP_REP_IMPORT.  A refusal ends with the status.
    static func importReply(_ device: DeviceRecord) -> [UInt8] { replyHeader(.importDevice, .success) + device.bytes }
    static func importRefusal(_ status: RequestStatus) -> [UInt8] { replyHeader(.importDevice, status) }

    private static func replyHeader(_ code: RequestCode, _ status: RequestStatus) -> [UInt8] {
        bytes(version) + bytes(code.rawValue & 0x7FFF) + bytes(status.rawValue)
    }

    // MARK: Commands

    /// A command on an imported device's connection.
    struct Command: Hashable {
        enum Kind: Hashable {
            case submit(Submission)
            /// The submission of this number is to end.
            case unlink(UInt32)
        }

        let number: UInt32
        let kind: Kind

        /// The number of bytes after the header.
        var bodySize: Int {
            if case .submit(let submission) = kind, !submission.isIn { submission.length } else { 0 }
        }

        /// - Parameter deviceID: the one that the client received with its import.
        /// - Returns: nil for an unsupported command: an unknown one, one for another device, or one that
        ///   ``Submission``
        ///   rejects.
        init?(_ header: [UInt8], deviceID: UInt32) {
            var fields = Fields(header)
            guard header.count == USBIP.commandHeaderSize, let command = fields.uint32(), let number = fields.uint32(),
                fields.uint32() == deviceID, let direction = fields.uint32(), let endpoint = fields.uint32()
            else { return nil }
            self.number = number
            switch command {
            case 1:
                guard let submission = Submission(direction: direction, endpoint: endpoint, &fields) else { return nil }
                kind = .submit(submission)
            case 2:
                guard let unlinked = fields.uint32() else { return nil }
                kind = .unlink(unlinked)
            default:
                return nil
            }
        }
    }

    /// USBIP_CMD_SUBMIT after the number: a transfer.
    struct Submission: Hashable {
        let endpoint: UInt8
        let isIn: Bool
        /// The number of bytes to send, which follow the header, or to receive.
        let length: Int
        /// True if fewer bytes than ``length`` are an error (URB_SHORT_NOT_OK).
        let shortIsError: Bool
        /// Unused except for isochronous transfers, and returned unchanged: Linux sends -1 and 0, the tables of its
        /// documentation require 0 and -1.
        let startFrame: UInt32
        let packetCount: UInt32
        /// The setup packet of a control transfer.
        let setup: [UInt8]

        /// More than any driver of a card reader asks for, and little enough to keep for a client that asks in vain.
        static let maximumLength = 128 * 1024

        /// - Returns: nil for an isochronous transfer, an endpoint above 15, and more than ``maximumLength`` bytes.
        fileprivate init?(direction: UInt32, endpoint: UInt32, _ fields: inout Fields) {
            guard direction <= 1, endpoint <= 15, let flags = fields.uint32(), let length = fields.uint32(),
                length <= Self.maximumLength, let startFrame = fields.uint32(), let packetCount = fields.uint32(),
                packetCount == 0 || packetCount == .max, fields.uint32() != nil
            else { return nil }
            isIn = direction == 1
            self.endpoint = UInt8(endpoint) | (isIn && endpoint != 0 ? 0x80 : 0)
            self.length = Int(length)
            shortIsError = flags & 1 != 0
            self.startFrame = startFrame
            self.packetCount = packetCount
            setup = fields.rest
        }

        /// Returns a USBIP_RET_SUBMIT message.
        ///
        /// - Parameter status: 0 or a negative errno.
        /// - Parameter length: the number of bytes sent; of the received bytes, only ``length`` are delivered.
        func reply(_ number: UInt32, status: Int32, length: Int, data: [UInt8]) -> [UInt8] {
            let data = isIn ? Array(data.prefix(self.length)) : []
            let length = isIn ? data.count : min(length, self.length)
            let isShort = isIn && shortIsError && status == 0 && length < self.length
            return USBIP.reply(
                3, number,
                [
                    UInt32(bitPattern: isShort ? -EREMOTEIO : status), UInt32(truncatingIfNeeded: length), startFrame,
                    packetCount, 0,
                ]) + data
        }
    }

    /// USBIP_RET_UNLINK.
    static func unlinkReply(_ number: UInt32, status: Int32) -> [UInt8] {
        reply(4, number, [UInt32(bitPattern: status)])
    }

    /// A reply's device, direction and endpoint are 0.
    fileprivate static func reply(_ command: UInt32, _ number: UInt32, _ fields: [UInt32]) -> [UInt8] {
        let header = ([command, number, 0, 0, 0] + fields).flatMap { bytes($0) }
        return header + [UInt8](repeating: 0, count: max(0, commandHeaderSize - header.count))
    }

    fileprivate static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}

extension USBIP {
    /// A device as lists and imports describe it.
    struct DeviceRecord: Hashable {
        /// Its path in the exporting machine's sysfs.
        var path: String
        var busID: String
        var busNumber: UInt16
        var deviceNumber: UInt16
        /// 18 bytes.
        var deviceDescriptor: [UInt8]
        /// With all that follows it.
        var configurationDescriptor: [UInt8]

        /// The number that names the device in commands.
        var id: UInt32 { UInt32(busNumber) << 16 | UInt32(deviceNumber) }

        /// 312 bytes.
        var bytes: [UInt8] {
            padded(path, to: 256) + padded(busID, to: USBIP.busIDSize)
                + [UInt32(busNumber), UInt32(deviceNumber), fullSpeed].flatMap { USBIP.bytes($0) }
                // The descriptor's numbers are little endian.
                + [9, 8, 11, 10, 13, 12, 4, 5, 6].map { byte(deviceDescriptor, $0) }
                + [byte(configurationDescriptor, 5), byte(deviceDescriptor, 17), byte(configurationDescriptor, 4)]
        }

        /// Four for each interface: class, subclass, protocol and a zero.
        var interfaceBytes: [UInt8] {
            var described: [[UInt8]] = []
            var rest = configurationDescriptor[...]
            while let size = rest.first, size >= 2, rest.count >= size {
                let descriptor = Array(rest.prefix(Int(size)))
                // INTERFACE, as it is without an alternate setting (USB 2.0, 9.6.5).
                if descriptor[1] == 0x04, size >= 9, descriptor[3] == 0 { described.append(descriptor[5...7] + [0]) }
                rest = rest.dropFirst(Int(size))
            }
            // The number that the record announces.
            let count = Int(byte(configurationDescriptor, 4))
            return (described.prefix(count) + Array(repeating: [0, 0, 0, 0], count: max(0, count - described.count)))
                .flatMap { $0 }
        }

        /// USB_SPEED_FULL (Linux, include/uapi/linux/usb/ch9.h).
        private var fullSpeed: UInt32 { 2 }

        private func byte(_ bytes: [UInt8], _ index: Int) -> UInt8 { bytes.indices.contains(index) ? bytes[index] : 0 }

        private func padded(_ text: String, to size: Int) -> [UInt8] {
            let text = text.utf8.prefix(size - 1)
            return text + [UInt8](repeating: 0, count: size - text.count)
        }
    }

    /// Takes big-endian numbers off bytes, as long as there are enough.
    fileprivate struct Fields {
        private var bytes: ArraySlice<UInt8>

        init(_ bytes: [UInt8]) { self.bytes = bytes[...] }

        var rest: [UInt8] { Array(bytes) }

        mutating func uint16() -> UInt16? { number() }
        mutating func uint32() -> UInt32? { number() }

        private mutating func number<Number: FixedWidthInteger & UnsignedInteger>() -> Number? {
            let size = Number.bitWidth / 8
            guard bytes.count >= size else { return nil }
            defer { bytes = bytes.dropFirst(size) }
            return bytes.prefix(size).reduce(0) { $0 << 8 | Number($1) }
        }
    }
}

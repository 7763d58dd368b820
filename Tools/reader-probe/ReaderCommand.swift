import ArgumentParser
import CardReaders
import Foundation
import SmartCard
import SmartCardPCSC
import SmartCardPN532
import SmartCardUSB
import ToolReaders
import ToolSupport

struct ReaderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reader", abstract: "Shows facts about the readers: descriptors, features, firmware, limits.")

    @OptionGroup var readerOptions: ReaderOptions

    @OptionGroup var format: JSONOption

    func run() async throws {
        let machine = MachineFacts(FileTree(), environment: ProcessInfo.processInfo.environment)
        var reports: [ReaderReport] = []
        for reader in try await readerOptions.readers() {
            reports.append(try await withTimeLimit(.seconds(60)) { await ReaderReport(reader, machine.usb ?? []) })
        }
        if format.json {
            try Report.print(["readers": reports])
        } else {
            Terminal.print(reports.map(\.text).joined(separator: "\n\n"))
        }
    }
}

/// The known facts about a reader, as printed by `reader --json`.
struct ReaderReport: Encodable, Sendable {
    /// The facts from its descriptors (USB 2.0, 9.6; CCID 1.10, 5.1).
    struct Device: Encodable, Sendable {
        /// `072F:2200`
        let id: String
        /// bcdDevice: `2.14`
        let release: String
        /// Bus and ports; null if only the descriptor is known.
        @OrNull var place: String?
        @OrNull var speed: String?
        @OrNull var maximumPower: Int?
        let quirks: [String]
    }

    struct CCID: Encodable, Sendable {
        let slots: Int
        let protocols: [String]
        let level: String
        let features: String
        /// The length in bytes, including the header of 10.
        let maximumMessage: Int
        let maximumIFSD: Int

        init(_ descriptor: CCIDDescriptor) {
            slots = descriptor.slotCount
            protocols = descriptor.protocolNames
            level = descriptor.levelName
            features = hexadecimal(descriptor.features.rawValue, digits: 8)
            maximumMessage = Int(descriptor.maximumMessageLength)
            maximumIFSD = Int(descriptor.maximumIFSD)
        }
    }

    let reader: Report.Reader
    /// The model; null for an unknown reader.
    @OrNull var model: String?
    @OrNull var device: Device?
    @OrNull var ccid: CCID?
    @OrNull var firmware: String?
    /// The route of a command to the reader itself; null if none reached it.
    @OrNull var route: String?
    /// The functions for which no command is known.
    var lacks: [String] = []
    /// The features of PC/SC part 10, by name, or by tag in hexadecimal.
    var features: [String] = []
    /// The attributes by name; values for people.
    var attributes: [String: String] = [:]
    /// The facts that could not be determined.
    var failures: [String] = []

    init(_ reader: any CardReader, _ devices: [MachineFacts.USBDevice]) async {
        var identity = reader.identity
        var channel: PCSCChannelID?
        let driver = (reader as? MachineReader)?.driver
        if let reader = driver as? PCSCReader {
            do {
                let direct = try await reader.connect(sharing: .direct)
                features = try await direct.features().keys.map(\.name).sorted()
                identity.vendor = try await direct.attribute(.vendorName)
                identity.serialNumber = try await direct.attribute(.serialNumber)
                attributes["vendor"] = identity.vendor
                attributes["model"] = try await direct.attribute(.model)
                attributes["serial number"] = identity.serialNumber
                attributes["version"] = try await direct.attribute(.readerVersion)?.description
                attributes["longest command"] = try await direct.attribute(.longestCommand).map { "\($0) bytes" }
                channel = try await direct.attribute(.channelID)
                await direct.disconnect(.leave)
            } catch {
                failures.append("\(error)")
            }
        }
        self.reader = Report.Reader(identity)
        let found: MachineFacts.USBDevice? =
            switch driver {
            case let reader as USBReader:
                devices.first { $0.place == reader.place }
            case is PCSCReader:
                devices.first { $0.channel == channel?.number } ?? (devices.count == 1 ? devices.first : nil)
            default: nil
            }
        if let found {
            device = Device(
                id: found.idText, release: found.releaseText, place: found.place, speed: found.speed,
                maximumPower: found.descriptors?.maximumPower, quirks: found.quirks.map(\.rawValue).sorted())
            ccid = found.descriptors?.ccid.map(CCID.init)
        }
        if let reader = driver as? USBReader { ccid = CCID(reader.descriptor) }
        model = reader.model?.name
        if let board = driver as? PN532Reader {
            (firmware, route) = ("\(board.firmware.version).\(board.firmware.revision)", "its serial port")
        }
        guard let known = reader.model, known.commands != .chip, [nil, .contactless].contains(reader.slot) else {
            return
        }
        lacks = Model.Function.allCases.filter { known.functions[$0] == nil }.map(\.rawValue)
        guard known.functions[.firmware] != nil else { return }
        do {
            let told = try await reader.withLink { try await ReaderItself(known, over: $0) }
            (firmware, route) = (told.firmware, told.route)
        } catch {
            failures.append("\(error)")
        }
    }

    var text: String {
        var lines = ["\(Terminal.styled(reader.name, .bold))  (\(reader.backend))"]
        func field(_ name: String, _ value: String?) {
            if let value, !value.isEmpty { lines.append(CardText.field(name, value)) }
        }
        field("Model", model)
        if let device {
            let speed = device.speed.map { "\($0) Mbit/s" }
            let power = device.maximumPower.map { "\($0) mA" }
            field(
                "USB",
                [device.id, "release \(device.release)", device.place, speed, power].compactMap(\.self).joined(
                    separator: ", "))
            field("Quirks", device.quirks.joined(separator: ", "))
        }
        if let ccid {
            field(
                "CCID",
                "\(ccid.slots) slot\(ccid.slots == 1 ? "" : "s"), \(ccid.protocols.joined(separator: ", ")), \(ccid.level), dwFeatures \(ccid.features)"
            )
            field("Limits", "messages of \(ccid.maximumMessage) bytes, IFSD \(ccid.maximumIFSD)")
        }
        field("Firmware", firmware)
        field("Commands", route.map { "by \($0)" })
        field("Lacks", lacks.joined(separator: ", "))
        field("Features", features.joined(separator: ", "))
        for (name, value) in attributes.sorted(by: { $0.key < $1.key }) { field(name.capitalized, value) }
        lines += failures.map { "   " + Terminal.styled("! \($0)", .warning) }
        return lines.joined(separator: "\n")
    }
}

extension PCSCFeature {
    /// The name for people; the tag if there is none.
    fileprivate var name: String { Self.names[self] ?? hexadecimal(rawValue, digits: 2) }

    private static let names: [PCSCFeature: String] = [
        .verifyPINStart: "verify PIN start", .verifyPINFinish: "verify PIN finish", .modifyPINStart: "modify PIN start",
        .modifyPINFinish: "modify PIN finish", .getKeyPressed: "get key pressed", .verifyPINDirect: "verify PIN",
        .modifyPINDirect: "modify PIN", .mctReaderDirect: "MCT reader", .mctUniversal: "MCT universal",
        .pinProperties: "PIN properties", .abort: "abort", .setSPEMessage: "set message",
        .verifyPINDirectAppID: "verify PIN, application", .modifyPINDirectAppID: "modify PIN, application",
        .writeDisplay: "write display", .getKey: "get key", .displayProperties: "display properties",
        .tlvProperties: "properties", .escape: "escape", .executePACE: "PACE",
    ]
}

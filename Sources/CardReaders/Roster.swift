package import SmartCardPCSC
package import USBDevices

/// Which physical readers there are, each once, by what PC/SC and the USB tell of them.
package struct Roster: Sendable {
    /// What pcscd's driver tells.
    package struct PCSCFacts: Hashable, Sendable {
        package var name: String
        package var vendor: String?
        package var serialNumber: String?
        package var version: PCSCDriverVersion?
        package var channel: PCSCChannelID?
        /// Whether the driver could be asked: not while another program has the reader for itself.
        package var isComplete: Bool

        package init(
            name: String, vendor: String? = nil, serialNumber: String? = nil, version: PCSCDriverVersion? = nil,
            channel: PCSCChannelID? = nil, isComplete: Bool = true
        ) {
            (self.name, self.vendor, self.serialNumber) = (name, vendor, serialNumber)
            (self.version, self.channel, self.isComplete) = (version, channel, isComplete)
        }
    }

    /// A slot of a device, as the descriptors tell.
    package struct USBFacts: Hashable, Sendable {
        package var device: USBDevice
        package var interface: Int
        package var slot: Int

        package init(device: USBDevice, interface: Int = 0, slot: Int = 0) {
            (self.device, self.interface, self.slot) = (device, interface, slot)
        }
    }

    package struct Entry: Sendable {
        /// By which it is known again when it comes back.
        package let id: String
        /// Without the numbers that depend on what was plugged in before.
        package let name: String
        /// Nil for one that no USB device was found for.
        package let device: USBDevice?
        package let version: String?
        /// What drives it: PC/SC where pcscd has the reader, else the USB.  The position in the list handed in.
        package let source: Source
    }

    package enum Source: Hashable, Sendable { case pcsc(Int), usb(Int) }

    /// Serial numbers that two devices have had at once.  They are nobody's from then on, also when one has left.
    private var repeated: Set<Numbered> = []

    /// How long a reader that pcscd drove is left to it when only the USB has it: pcscd is starting, or has not seen yet that
    /// it is plugged in again, and could not drive a reader that is claimed.
    package static let pcscdReturns = Duration.seconds(30)
    /// How long a reader that is plugged in while pcscd answers is left to it: pcscd hears of it no sooner than we do, and opens
    /// it before it tells.
    package static let pcscdOpens = Duration.seconds(5)
    /// The slots of the last look, each with when it was new beside a pcscd that answers; nil: nobody has looked.
    private var arrivals: [USBFacts: ContinuousClock.Instant?]?
    /// Those that pcscd has driven, each with when it was first missed.
    private var ofPCSC: [String: ContinuousClock.Instant?] = [:]
    /// When a reader is no longer left to pcscd; nil: there is none.
    package private(set) var changesAt: ContinuousClock.Instant?

    private struct Numbered: Hashable {
        let vendorID: UInt16, productID: UInt16
        let serialNumber: String?

        init(_ device: USBDevice) {
            (vendorID, productID, serialNumber) = (device.vendorID, device.productID, device.serialNumber)
        }
    }

    package init() {}

    /// The readers in the order of pcscd's list, then those that are on USB alone.
    ///
    /// - Parameter pcscdAnswers: whether pcscd may take what is new.
    package mutating func entries(
        pcsc: [PCSCFacts], usb: [USBFacts], pcscdAnswers: Bool = false, at now: ContinuousClock.Instant = .now
    ) -> [Entry] {
        let arrival = arrivals != nil && pcscdAnswers ? now : nil
        arrivals = Dictionary(
            usb.map { ($0, arrivals?[$0] ?? arrival) }, uniquingKeysWith: { first, _ in first })
        let devices = Set(usb.map(\.device))
        for (model, devices) in Dictionary(grouping: devices, by: Numbered.init) where devices.count > 1 {
            repeated.insert(model)
        }
        var slots = Dictionary(grouping: usb.indices) { usb[$0].device }
            .mapValues { $0.sorted { (usb[$0].interface, usb[$0].slot) < (usb[$1].interface, usb[$1].slot) } }
        let ids = Dictionary(
            slots.flatMap { device, indices in
                indices.enumerated().map { ($1, id(of: device, slot: $0, of: indices.count)) }
            }, uniquingKeysWith: { first, _ in first })

        // Which slot of which device pcscd means: by order, since it numbers a device's slots so.
        var drivenByPCSC: [Int: Int] = [:]
        func take(_ device: USBDevice, for reader: Int) {
            guard let index = slots[device]?.first else { return }
            slots[device]?.removeFirst()
            drivenByPCSC[reader] = index
        }
        let order = pcsc.indices.sorted { pcsc[$0].name < pcsc[$1].name }
        for reader in order {
            guard let device = devices.first(where: { pcsc[reader].isOn($0) }) else { continue }
            take(device, for: reader)
        }
        // One that cannot be asked is the one that is left, if only one is.
        let unknown = order.filter { drivenByPCSC[$0] == nil && !pcsc[$0].isComplete }
        let left = slots.filter { !$0.value.isEmpty }
        if unknown.count == 1, left.count == 1, let device = left.first?.key { take(device, for: unknown[0]) }

        let names = Dictionary(grouping: pcsc, by: \.ownName).mapValues(\.count)
        let known = Dictionary(grouping: pcsc.compactMap(\.serialNumber)) { $0 }.mapValues(\.count)
        var entries = pcsc.indices.map { index in
            let facts = pcsc[index]
            let slot = drivenByPCSC[index]
            let id =
                slot.flatMap { ids[$0] }
                ?? facts.serialNumber.flatMap { known[$0] == 1 ? $0 : nil }
                // The numbers behind a name depend on what was plugged in before.
                ?? (names[facts.ownName] == 1 ? facts.ownName : facts.name)
            return Entry(
                id: id, name: facts.ownName, device: slot.map { usb[$0].device },
                version: slot.map { usb[$0].device.version } ?? facts.version.map { "\($0.major).\($0.minor)" },
                source: .pcsc(index))
        }
        for entry in entries { ofPCSC[entry.id] = .some(nil) }
        let taken = Set(drivenByPCSC.values)
        let onUSB = usb.indices.filter { !taken.contains($0) }.map { index in
            let device = usb[index].device
            return Entry(
                id: ids[index] ?? "",
                name: [device.manufacturer, device.product].compactMap(\.self).joined(separator: " "), device: device,
                version: device.version, source: .usb(index))
        }
        changesAt = nil
        entries += onUSB.filter { entry in
            guard case .usb(let index) = entry.source else { return true }
            let arrival = pcscdAnswers ? arrivals?[usb[index]] ?? nil : nil
            return !isLeftToPCSCD(entry.id, arrival, at: now)
        }
        return entries
    }

    private mutating func isLeftToPCSCD(
        _ id: String, _ arrival: ContinuousClock.Instant?, at now: ContinuousClock.Instant
    ) -> Bool {
        guard let missed = ofPCSC[id] else {
            guard let end = arrival.map({ $0 + Self.pcscdOpens }), now < end else { return false }
            changesAt = changesAt.map { min($0, end) } ?? end
            return true
        }
        let end = (missed ?? now) + Self.pcscdReturns
        guard now < end else {
            ofPCSC[id] = nil
            return false
        }
        ofPCSC[id] = .some(missed ?? now)
        changesAt = changesAt.map { min($0, end) } ?? end
        return true
    }

    private func id(of device: USBDevice, slot: Int, of count: Int) -> String {
        guard let number = device.serialNumber, Self.identifies(number), !repeated.contains(Numbered(device)) else {
            let ports = device.ports.map(String.init).joined(separator: ".")
            return "\(device.modelIdentifier)@\(device.bus)-\(ports)#\(slot)"
        }
        return count == 1 ? number : "\(number)#\(slot)"
    }

    /// Printable, and not a filling such as 000000.
    private static func identifies(_ serialNumber: String) -> Bool {
        serialNumber.utf8.allSatisfy { (0x21...0x7E).contains($0) } && Set(serialNumber.utf8).count > 1
    }
}

extension Roster.PCSCFacts {
    /// The name without the numbers of reader and slot: ` 00 00`.
    fileprivate var ownName: String {
        let words = name.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count > 2, words.suffix(2).allSatisfy({ $0.utf8.count == 2 && UInt8($0, radix: 16) != nil }) else {
            return name
        }
        return words.dropLast(2).joined(separator: " ")
    }

    /// Whether this is a slot of `device`: by bus and address; by the serial number in the name where those are not told.
    fileprivate func isOn(_ device: USBDevice) -> Bool {
        if let channel {
            return channel.type == 0x0020 && channel.number == UInt16(device.bus) << 8 | UInt16(device.address)
        }
        return !isComplete && device.serialNumber.map { name.contains("(\($0))") } ?? false
    }
}

extension USBDevice {
    /// `072F:2200`.
    var modelIdentifier: String {
        [vendorID, productID].map { id in
            let digits = String(id, radix: 16, uppercase: true)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }.joined(separator: ":")
    }

    /// bcdDevice: `2.14`.
    fileprivate var version: String {
        let digits = String(release & 0xFF, radix: 16)
        return String(release >> 8, radix: 16) + "." + (digits.count == 1 ? "0" : "") + digits
    }
}

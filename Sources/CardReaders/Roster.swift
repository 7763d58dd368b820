package import SmartCardPCSC
package import USBDevices
package import Waiting

/// The physical readers, each once, derived from the facts of PC/SC and USB.
package struct Roster: Sendable {
    /// The facts from pcscd's driver.
    package struct PCSCFacts: Hashable, Sendable {
        package var name: String
        package var vendor: String?
        package var serialNumber: String?
        package var version: PCSCDriverVersion?
        package var channel: PCSCChannelID?
        /// True if the driver answered; false while another program holds the reader exclusively.
        package var isComplete: Bool

        package init(
            name: String, vendor: String? = nil, serialNumber: String? = nil, version: PCSCDriverVersion? = nil,
            channel: PCSCChannelID? = nil, isComplete: Bool = true
        ) {
            (self.name, self.vendor, self.serialNumber) = (name, vendor, serialNumber)
            (self.version, self.channel, self.isComplete) = (version, channel, isComplete)
        }
    }

    /// A slot of a device, from its descriptors.
    package struct USBFacts: Hashable, Sendable {
        package var device: USBDevice
        package var interface: Int
        package var slot: Int

        package init(device: USBDevice, interface: Int = 0, slot: Int = 0) {
            (self.device, self.interface, self.slot) = (device, interface, slot)
        }
    }

    package struct Entry: Sendable {
        /// The identifier that survives unplugging.
        package let id: String
        /// The name without the numbers that depend on earlier devices.
        package let name: String
        /// The USB device; nil if none was found.
        package let device: USBDevice?
        package let version: String?
        /// The driving backend, PC/SC if pcscd has the reader, else USB, with the position in its list.
        package let source: Source
    }

    package enum Source: Hashable, Sendable { case pcsc(Int), usb(Int) }

    /// Serial numbers that two devices had at once.  They identify neither from then on, even after one has left.
    private var repeated: Set<Numbered> = []

    /// The time for which a reader that pcscd drove is reserved for it when only USB shows it.  pcscd may be starting,
    /// or may not have noticed that the reader is back, and could not drive a claimed reader.
    package static let pcscdReturns = Duration.seconds(30)
    /// The time for which a reader that is plugged in while pcscd answers is reserved for pcscd.  pcscd hears of it no
    /// sooner than this process, and opens it before reporting it.
    package static let pcscdOpens = Duration.seconds(5)
    /// The slots at the last look, each with the time at which it appeared beside an answering pcscd; nil before the
    /// first look.
    private var arrivals: [USBFacts: Time.Instant?]?
    /// The readers that pcscd has driven, each with the time at which it was first missed.
    private var ofPCSC: [String: Time.Instant?] = [:]
    /// The next time at which a reader is no longer reserved for pcscd; nil: none is.
    package private(set) var changesAt: Time.Instant?

    private struct Numbered: Hashable {
        let vendorID: UInt16, productID: UInt16
        let serialNumber: String?

        init(_ device: USBDevice) {
            (vendorID, productID, serialNumber) = (device.vendorID, device.productID, device.serialNumber)
        }
    }

    package init() {}

    /// Returns the readers in pcscd's order, then those that only USB shows.
    ///
    /// - Parameter pcscdAnswers: true if pcscd may take new readers.
    package mutating func entries(
        pcsc: [PCSCFacts], usb: [USBFacts], pcscdAnswers: Bool = false, at now: Time.Instant = Time.now
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

        // Maps pcscd's readers to device slots by order: pcscd numbers a device's slots in that order.
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
        // A reader that cannot be asked is the remaining one, if only one remains.
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
                // The numbers behind a name depend on earlier devices.
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
        _ id: String, _ arrival: Time.Instant?, at now: Time.Instant
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

    /// Returns true for a printable serial number that is not a filler such as 000000.
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

    /// Returns true if this is a slot of `device`: by bus and address, or by the serial number in the name if those are
    /// unknown.
    fileprivate func isOn(_ device: USBDevice) -> Bool {
        if let channel {
            return channel.type == 0x0020 && channel.number == UInt16(device.bus) << 8 | UInt16(device.address)
        }
        return !isComplete && device.serialNumber.map { name.contains("(\($0))") } ?? false
    }
}

extension USBDevice {
    /// The vendor and product, such as `072F:2200`.
    var modelIdentifier: String {
        [vendorID, productID].map { id in
            let digits = String(id, radix: 16, uppercase: true)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }.joined(separator: ":")
    }

    /// The bcdDevice, such as `2.14`.
    fileprivate var version: String {
        let digits = String(release & 0xFF, radix: 16)
        return String(release >> 8, radix: 16) + "." + (digits.count == 1 ? "0" : "") + digits
    }
}

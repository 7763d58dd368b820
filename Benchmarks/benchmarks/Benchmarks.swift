import CBaseline
import CardReaders
import Glibc
import SmartCard
import SmartCardPCSC
import SmartCardSimulator
import SmartCardSimulatorHosts
import SmartCardUSB

/// The package's promises about time, measured against plain C on the same software reader in the same run.
@main
struct Benchmarks {
    static func main() async throws {
        try startWithMockBus()
        let part = CommandLine.arguments.dropFirst().first { $0 != Limit.gateOption } ?? ""
        let all: [(String, () async throws -> Void)] = [
            ("tlv", tlv), ("kernel", kernel), ("rrp", rrp), ("layers", layers), ("terminal", terminal),
            ("loyalty", loyalty), ("trace", trace), ("import", importing), ("store", store),
            ("forwarding", forwarding), ("usb", usb), ("pcsc", pcsc), ("link", link),
            ("start", start), ("passport", passport), ("polling", polling), ("bridge", bridge), ("checkout", checkout),
        ]
        for (name, run) in all where part.isEmpty || name.contains(part) { try await run() }
        if !Limit.areKept { exit(1) }
    }

    /// Restarts with the mock bus, whose library must be loaded from the start of the process.
    private static func startWithMockBus() throws {
        guard !UMockdevHost.isAvailable, getenv("LD_PRELOAD") == nil else { return }
        setenv("LD_PRELOAD", UMockdevHost.preloadLibrary, 1)
        var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", &arguments)
        throw CardError(.other, "cannot start anew with \(UMockdevHost.preloadLibrary)")
    }

    // MARK: Without a reader

    /// A record of 194 bytes with 19 objects, as an M/Chip card returns it; all values are made up.
    static let record: [UInt8] = {
        let tags: [(TLVTag, Int)] = [
            (0x57, 19), (0x5A, 8), (0x5F20, 12), (0x5F24, 3), (0x5F25, 3), (0x5F28, 2), (0x5F34, 1), (0x8C, 33),
            (0x8D, 12), (0x8E, 12), (0x9F07, 2), (0x9F08, 2), (0x9F0D, 5), (0x9F0E, 5), (0x9F0F, 5), (0x9F42, 2),
            (0x9F4A, 1), (0x9F44, 15),
        ]
        return TLVTag(0x70).encode(tags.flatMap { tag, length in tag.encode([UInt8](repeating: 0x11, count: length)) })
    }()

    static func tlv() async throws {
        let record = record
        let objects = try TLVList(record).flattened.count
        guard baseline_tlv_walk(record, record.count) == objects else {
            throw CardError(.other, "C counts differently")
        }
        let rounds = 20_000
        var sink = 0
        let results = paired(times: 31) {
            for _ in 0..<rounds { sink &+= Int(baseline_tlv_walk(record, record.count)) }
        } _: {
            for _ in 0..<rounds { sink &+= (try? TLVList(record).count) ?? 0 }
        }
        print("tlv: \(record.count) bytes, \(objects) objects (\(sink % 2))")
        report(results, per: Double(rounds), "C, walking without a list", "TLVList", limit: 0.48 / 0.08)
        let walks = paired(times: 31) {
            for _ in 0..<rounds { sink &+= Int(baseline_tlv_walk(record, record.count)) }
        } _: {
            for _ in 0..<rounds { try? TLVList.walk(record) { _, value, _ in sink &+= value.count } }
        }
        report(walks, per: Double(rounds), "C, walking without a list", "TLVList.walk", limit: 2)
        print("  emv-utils (C, -O2), on a 2-core machine: 0.48 µs into a list, 0.08 µs walking")
    }

    /// Measures the cost of our layers over a transport that costs nothing.
    static func layers() async throws {
        let channel = InstantChannel()
        let stack = Stack(for: VirtualReader(SoftwareACR122U()), timeLimit: nil).over(channel)
        let added = try await added(to: { _ = try await channel.transmit(readRecord) }, by: stack)
        print(
            "layers: chaining, GET RESPONSE and wrong Le add \(microseconds(added)) an APDU"
                + Limit.verdict(.microseconds(3), added)
                + (try await memory(of: stack, besides: channel, allocations: 2, bytes: 96)))
        try await usbLayers(
            "short APDU level", vendorID: 0x072F, productID: 0x2200, features: [0x40, 0, 2, 0], allocations: 19,
            bytes: 1340)
        try await usbLayers(
            "extended APDU level", vendorID: 0x076B, productID: 0x5022, features: [0xBA, 4, 4, 0], allocations: 18,
            bytes: 1300)
    }

    /// - Parameters:
    ///   - allocations: the most for an APDU, the same on every machine, and fewer in an optimized build.
    ///   - bytes: the most that these ask for, which grows with each copy of the command or the response.
    private static func usbLayers(
        _ name: String, vendorID: UInt16, productID: UInt16, features: [UInt8], allocations: Int, bytes: Int
    ) async throws {
        let bus = InstantBus(vendorID: vendorID, productID: productID, features: features)
        guard let reader = try await USBReaders(on: bus).readers().first else { throw CardError(.noReader) }
        let message = [0x6F, 5, 0, 0, 0, 0, 1, 0, 0, 0] + readRecord.bytes
        let link = InstantLink()
        let channel = Stack(for: reader, timeLimit: nil).over(try await reader.connect())
        let added = try await added(
            to: {
                link.write(message, to: 0x02, timeout: .zero) { _ in }
                link.read(320, from: 0x82, timeout: .zero) { _ in }
            }, by: channel)
        print(
            "layers: with those of SmartCardUSB, \(name), \(microseconds(added)) an APDU"
                + Limit.verdict(.nanoseconds(2_500), added)
                + (try await memory(of: channel, allocations: allocations, bytes: bytes)))
        await reader.close()
    }

    private static let readRecord = CommandAPDU.readRecord(1, sfi: 1)

    /// Returns the additional nanoseconds for an APDU through `channel` compared with `bare`: measured in turns, the
    /// least of 31 runs each, in which other programs interfered least.
    private static func added(
        to bare: () async throws -> Void, by channel: some CardChannel
    ) async throws -> Double {
        let rounds = Limit.isGate ? 100 : 20_000
        var without: [Double] = []
        var with: [Double] = []
        for _ in 0..<31 {
            without.append(try await time { for _ in 0..<rounds { try await bare() } })
            with.append(try await time { for _ in 0..<rounds { _ = try await channel.transmit(readRecord) } })
        }
        return ((with.min() ?? 0) - (without.min() ?? 0)) / Double(rounds)
    }

    /// Returns the allocations of an APDU through `channel`, in the mean of a thousand, and the verdict on them.
    private static func memory(
        of channel: some CardChannel, besides bare: InstantChannel? = nil, allocations most: Int, bytes mostBytes: Int
    ) async throws -> String {
        func mean(_ channel: some CardChannel) async throws -> (allocations: Int, bytes: Int) {
            let rounds = 1000
            _ = try await channel.transmit(readRecord)
            let (allocations, bytes) = (baseline_allocations(), baseline_allocated_bytes())
            for _ in 0..<rounds { _ = try await channel.transmit(readRecord) }
            // Other threads have a few of their own.
            return (
                (baseline_allocations() - allocations + rounds / 2) / rounds,
                (baseline_allocated_bytes() - bytes + rounds / 2) / rounds
            )
        }
        var (allocations, bytes) = try await mean(channel)
        if let bare {
            let without = try await mean(bare)
            (allocations, bytes) = (allocations - without.allocations, bytes - without.bytes)
        }
        return ", \(allocations) allocations" + Limit.verdict("\(most)", isKept: allocations <= most)
            + " of \(bytes) bytes" + Limit.verdict("\(mostBytes)", isKept: bytes <= mostBytes)
    }

    // MARK: With a reader

    private static let selectPPSE = CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8))

    /// A reader that reports a card immediately, so that its own polling is excluded from measurements.
    private static func promptReader() -> SoftwareACR122U {
        var profile = ACR122UProfile.firmware216
        profile.detectionDelay = .zero
        return SoftwareACR122U(profile: profile)
    }

    static func usb() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = promptReader()
        if let card = VirtualCards.named("visa") { device.insert(card) }
        try host.plug(device)
        guard let reader = try await USBReaders().readers().first else { throw CardError(.noReader) }
        let command = selectPPSE.bytes
        var ours: [Double] = []
        var plain: [Double] = []
        // Only one of the two can hold the interface, so they alternate in blocks of a hundred.
        for _ in 0..<15 {
            guard let baseline = baseline_usb_open() else { throw CardError(.other, "the C program finds no reader") }
            for _ in 0..<100 { plain.append(Double(baseline_usb_transmit(baseline, command, command.count))) }
            baseline_usb_close(baseline)
            let card = try await reader.connect()
            for _ in 0..<100 { ours.append(try await time { _ = try await card.transmit(selectPPSE) }) }
            await card.disconnect(.leave)
            await reader.close()
        }
        guard !plain.contains(where: { $0 < 0 }) else { throw CardError(.other, "an exchange of the C program failed") }
        report((plain, ours), per: 1, "C with libusb_bulk_transfer", "SmartCardUSB, an APDU", limit: 0.90)

        device.remove()
        try await events(of: reader, device, name: "usb")
        await reader.close()
    }

    static func pcsc() async throws {
        let host = try UMockdevHost()
        let device = promptReader()
        if let card = VirtualCards.named("visa") { device.insert(card) }
        try host.plug(device)
        let service = try PrivatePCSCD(.usb(host))
        defer { service.stop() }
        try service.waitForReader(withCard: true)
        for (name, value) in service.environment { setenv(name, value, 1) }
        guard let reader = try await PCSCService().readers().first else { throw CardError(.noReader) }
        let card = try await reader.connect()
        let command = selectPPSE.bytes
        guard let baseline = baseline_scard_open() else { throw CardError(.other, "the C program finds no card") }
        var ours: [Double] = []
        var plain: [Double] = []
        for _ in 0..<1_500 {
            plain.append(Double(baseline_scard_transmit(baseline, command, command.count)))
            ours.append(try await time { _ = try await card.transmit(selectPPSE) })
        }
        baseline_scard_close(baseline)
        guard !plain.contains(where: { $0 < 0 }) else { throw CardError(.other, "an exchange of the C program failed") }
        report((plain, ours), per: 1, "C with SCardTransmit", "SmartCardPCSC, an APDU", limit: 1.03)
        await card.disconnect(.leave)

        device.remove()
        try await events(of: reader, device, name: "pcsc")
    }

    /// Measures how soon a cancelled wait ends, how often the process wakes without a card, and how soon a card is
    /// noticed.
    private static func events(of reader: some CardReader, _ device: SoftwareACR122U, name: String) async throws {
        var wakes: [Double] = []
        for _ in 0..<50 {
            let waiting = Task { try await reader.waitForCard() }
            try await Task.sleep(for: .milliseconds(30))
            wakes.append(
                await time {
                    waiting.cancel()
                    _ = await waiting.result
                })
        }
        print(
            "\(name): a cancelled wait wakes in \(microseconds(median(wakes))), at most \(microseconds(wakes.max() ?? 0))"
                + Limit.verdict(.milliseconds(5), median(wakes)))

        // Alternates five seconds without a user of the reader and five seconds with a task that waits for a card.
        var added: [Double] = []
        for _ in 0..<3 {
            let without = try await wakeUpsInFiveSeconds()
            let waiting = Task { try await reader.waitForCard() }
            try await Task.sleep(for: .milliseconds(500))
            added.append(Double(try await wakeUpsInFiveSeconds() - without) / 5)
            waiting.cancel()
            _ = await waiting.result
        }
        let wakeUps = max(median(added), 0)
        print(
            "\(name): waiting for a card wakes the process \(tenths(wakeUps)) times a second"
                + Limit.verdict(atMost: 0.5, wakeUps))

        guard let card = VirtualCards.named("visa") else { return }
        var delays: [Double] = []
        var states = reader.slotStates().makeAsyncIterator()
        while let state = try await states.next(), state.hasCard {}
        for _ in 0..<21 {
            delays.append(
                try await time {
                    device.insert(card)
                    while let state = try await states.next(), !state.hasCard {}
                })
            device.remove()
            while let state = try await states.next(), state.hasCard {}
        }
        print(
            "\(name): a card is seen \(microseconds(median(delays))) after it comes"
                + Limit.verdict(.milliseconds(20), median(delays)))
    }
}

/// Answers at once.
private struct InstantChannel: CardChannel {
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { ResponseAPDU(status: .success) }
}

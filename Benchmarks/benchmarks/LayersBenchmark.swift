import CBaseline
import CardReaders
import SmartCard
import SmartCardSimulator
import SmartCardUSB

extension Benchmarks {
    /// A record of 194 bytes with 19 objects, as an M/Chip card returns it; all values are made up.
    static let record: [UInt8] = {
        let tags: [(TLVTag, Int)] = [
            (0x57, 19), (0x5A, 8), (0x5F20, 12), (0x5F24, 3), (0x5F25, 3), (0x5F28, 2), (0x5F34, 1), (0x8C, 33),
            (0x8D, 12), (0x8E, 12), (0x9F07, 2), (0x9F08, 2), (0x9F0D, 5), (0x9F0E, 5), (0x9F0F, 5), (0x9F42, 2),
            (0x9F4A, 1), (0x9F44, 15),
        ]
        return TLVTag(0x70).encode(tags.flatMap { tag, length in tag.encode([UInt8](repeating: 0x11, count: length)) })
    }()

    /// Measures a list of a record's objects, and a walk over them, against C that does the same.
    static func tlv() async throws {
        let record = record
        let objects = try TLVList(record).flattened.count
        guard Int(baseline_tlv_list(record, record.count)) == objects else {
            throw CardError(.other, "C counts differently")
        }
        print("tlv: \(record.count) bytes, \(objects) objects")
        var sink = 0
        let list = try await Allocations(rounds: 100) { sink &+= try TLVList(record).count }
        let walk = try await Allocations(rounds: 100) { try TLVList.walk(record) { sink &+= $1.count + $2 } }
        print(
            "  TLVList: \(list.verdict(atMost: 1, unoptimized: 1)); TLVList.walk: \(walk.verdict(atMost: 0, unoptimized: 0))"
        )
        guard !Limit.isGate else { return }
        let rounds = 20_000
        let lists = try await Comparison(.processorTime, limit: listLimit) {
            await processorTime { for _ in 0..<rounds { sink &+= Int(baseline_tlv_list(record, record.count)) } }
        } _: {
            try await processorTime { for _ in 0..<rounds { sink &+= try TLVList(record).count } }
        }
        report(lists, per: Double(rounds), "C, a list", "TLVList", limit: listLimit)
        let walks = try await Comparison(.processorTime, limit: walkLimit) {
            await processorTime { for _ in 0..<rounds { sink &+= baseline_tlv_walk(record, record.count) } }
        } _: {
            try await processorTime {
                for _ in 0..<rounds { try TLVList.walk(record) { _, value, _ in sink &+= value.count } }
            }
        }
        report(walks, per: Double(rounds), "C, a walk", "TLVList.walk", limit: walkLimit)
        print("  (\(sink % 2)) emv-utils (C, -O2), on a 2-core machine: 0.48 µs into a list, 0.08 µs walking")
    }

    private static let (listLimit, walkLimit) = (2.0, 1.5)

    /// Measures the cost of our layers over a transport that costs nothing.
    static func layers() async throws {
        let channel = InstantChannel()
        let stack = Stack(for: VirtualReader(SoftwareACR122U()), timeLimit: nil).over(channel)
        let added = try await added(to: { _ = try await channel.transmit(readRecord) }, by: stack)
        print(
            "layers: chaining, GET RESPONSE and wrong Le add \(microseconds(added)) an APDU"
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

    /// Returns the allocations of an APDU through `channel`, and the verdict on them.
    private static func memory(
        of channel: some CardChannel, besides bare: InstantChannel? = nil, allocations most: Int, bytes mostBytes: Int
    ) async throws -> String {
        let own = try await Allocations(rounds: 1000) { _ = try await channel.transmit(readRecord) }
        let others = try await Allocations(rounds: 1000) { _ = try await bare?.transmit(readRecord) }
        let (allocations, bytes) = (own.count - others.count, own.bytes - others.bytes)
        return ", \(allocations) allocations" + Limit.verdict(atMost: most, allocations) + " of \(bytes) bytes"
            + Limit.verdict(atMost: mostBytes, bytes)
    }
}

/// Answers at once.
private struct InstantChannel: CardChannel {
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { ResponseAPDU(status: .success) }
}

import Synchronization

/// A FeliCa card without its cipher (JIS X 6319-4; Sony, FeliCa Card User's Manual, Excerpted Edition, chapter 4): systems
/// with random services that ask for no authentication.
///
/// It answers Polling, Request Response, Read Without Encryption, Write Without Encryption and Request System Code.
/// Everything else, and a packet that is not well formed or for another IDm, is met with silence.
final class FeliCaCard: VirtualCard {
    struct System: Sendable {
        let code: UInt16
        var services: [Service]
    }

    /// Blocks, and the codes of the services that share them: `…001001` reads and writes, `…001011` only reads.
    struct Service: Sendable {
        let codes: [UInt16]
        /// Each of 16 bytes.
        var blocks: [[UInt8]]
    }

    /// The maximum number of blocks in one command: the most that an NFC Forum Type 3 Tag may state.
    private static let mostRead = 15
    private static let mostWritten = 13

    let radio: VirtualCardRadio
    private let idm: [UInt8]
    private let systems: Mutex<[System]>

    init(radio: VirtualCardRadio, systems: [System]) {
        self.radio = radio
        idm = radio.identifier
        self.systems = Mutex(systems)
    }

    func reset() {}

    /// Exchanges a packet: its length, which counts itself, a command code, and, except for Polling, the IDm.
    func exchangeNative(_ packet: [UInt8]) -> [UInt8]? {
        guard packet.count >= 2, Int(packet[0]) == packet.count else { return nil }
        guard packet[1] != 0x00 else { return radio.response(toPolling: packet.dropFirst()) }
        guard packet.count >= 10, packet[2] & 0x0F == idm[0], packet[3..<10] == idm[1...] else { return nil }
        let number = Int(packet[2] >> 4)
        return systems.withLock { systems in
            guard systems.indices.contains(number) else { return nil }
            let body: [UInt8]?
            switch packet[1] {
            case 0x04: body = packet.count == 10 ? [0x00] : nil  // Mode 0
            case 0x06: body = systems[number].read(packet[10...], most: Self.mostRead)
            case 0x08: body = systems[number].write(packet[10...], most: Self.mostWritten)
            case 0x0C where packet.count == 10:
                body = [UInt8(systems.count)] + systems.flatMap(\.code.bigEndianBytes)
            default: body = nil
            }
            return body.map { [UInt8(10 + $0.count), packet[1] + 1] + packet[2..<10] + $0 }
        }
    }
}

extension FeliCaCard.System {
    /// Status flags 1 and 2 of a refusal: where in the list, from 1, or `FF`; and why.
    private struct Refusal: Error {
        let flags: [UInt8]

        init(at position: Int? = nil, _ reason: UInt8) {
            flags = [position.map { UInt8(truncatingIfNeeded: $0) } ?? 0xFF, reason]
        }
    }

    private struct BlockList {
        var places: [(service: Int, block: Int)] = []
        /// The bytes after the list.
        var rest: ArraySlice<UInt8>
    }

    /// Read Without Encryption.
    ///
    /// - Returns: status flags, and after success the number of blocks and the blocks; nil for silence.
    func read(_ parameters: ArraySlice<UInt8>, most: Int) -> [UInt8]? {
        do {
            guard let list = try blockList(parameters, most: most, writes: false), list.rest.isEmpty else { return nil }
            let blocks = list.places.flatMap { services[$0.service].blocks[$0.block] }
            return [0x00, 0x00, UInt8(list.places.count)] + blocks
        } catch {
            return error.flags
        }
    }

    /// Write Without Encryption: all blocks or none.
    mutating func write(_ parameters: ArraySlice<UInt8>, most: Int) -> [UInt8]? {
        do {
            guard let list = try blockList(parameters, most: most, writes: true),
                list.rest.count == 16 * list.places.count
            else { return nil }
            for (index, place) in list.places.enumerated() {
                services[place.service].blocks[place.block] = Array(list.rest.dropFirst(16 * index).prefix(16))
            }
            return [0x00, 0x00]
        } catch {
            return error.flags
        }
    }

    /// Number of services, their codes, least significant byte first; number of blocks, and of each its place in two
    /// bytes or three: bit 8 for two, access mode, order of its service, block number.
    ///
    /// - Returns: nil for a list that ends too early.
    private func blockList(
        _ parameters: ArraySlice<UInt8>, most: Int, writes: Bool
    ) throws(Refusal) -> BlockList? {
        var list = BlockList(rest: parameters)
        guard let serviceCount = list.rest.popFirst() else { return nil }
        guard (1...16).contains(serviceCount) else { throw Refusal(0xA1) }
        var codes: [UInt16] = []
        for _ in 0..<serviceCount {
            guard let low = list.rest.popFirst(), let high = list.rest.popFirst() else { return nil }
            codes.append(UInt16(high) << 8 | UInt16(low))
        }
        guard let blockCount = list.rest.popFirst().map(Int.init) else { return nil }
        guard (1...most).contains(blockCount) else { throw Refusal(0xA2) }
        for position in 1...blockCount {
            guard let mode = list.rest.popFirst(), let low = list.rest.popFirst() else { return nil }
            var block = Int(low)
            if mode & 0x80 == 0 {
                guard let high = list.rest.popFirst() else { return nil }
                block |= Int(high) << 8
            }
            let order = Int(mode & 0x0F)
            guard codes.indices.contains(order) else { throw Refusal(at: position, 0xA3) }
            guard let service = services.firstIndex(where: { $0.codes.contains(codes[order]) }) else {
                throw Refusal(at: position, 0xA6)
            }
            guard mode & 0x70 == 0 else { throw Refusal(at: position, 0xA7) }
            guard !writes || codes[order] & 0x02 == 0 else { throw Refusal(at: position, 0xA5) }
            guard services[service].blocks.indices.contains(block) else { throw Refusal(at: position, 0xA8) }
            list.places.append((service, block))
        }
        return list
    }
}

extension VirtualCardRadio {
    /// Returns a FeliCa card's response to Polling, length first; nil for silence.
    ///
    /// - Parameter request: `00`, system code with `FF` for any byte, request code, number of time slots less one.
    func response(toPolling request: some Collection<UInt8>) -> [UInt8]? {
        let request = Array(request)
        guard case .felica(let idm, let pmm, let systemCodes) = self, request.count == 5, request[0] == 0x00,
            [0x00, 0x01, 0x03, 0x07, 0x0F].contains(request[4]),
            let system = systemCodes.firstIndex(where: { code in
                zip(code.bigEndianBytes, request[1...2]).allSatisfy { $1 == 0xFF || $0 == $1 }
            })
        else { return nil }
        var response = [0x01, UInt8(truncatingIfNeeded: system) << 4 | idm[0]] + idm[1...] + pmm
        switch request[3] {
        case 0x00: break
        case 0x01: response += systemCodes[system].bigEndianBytes
        default: return nil
        }
        return [UInt8(response.count + 1)] + response
    }
}

extension UInt16 {
    fileprivate var bigEndianBytes: [UInt8] { [UInt8(self >> 8), UInt8(truncatingIfNeeded: self)] }
}

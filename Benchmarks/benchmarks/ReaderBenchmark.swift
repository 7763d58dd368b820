import CBaseline
import Foundation
import SmartCard
import SmartCardPCSC
import SmartCardSimulator
import SmartCardSimulatorHosts
import SmartCardUSB

extension Benchmarks {
    private static let selectPPSE = CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8))

    /// A reader that reports a card immediately, so that its own polling is excluded from measurements.
    private static func promptReader() -> SoftwareACR122U {
        var profile = ACR122UProfile.firmware216
        profile.detectionDelay = .zero
        return SoftwareACR122U(profile: profile)
    }

    private static func checked(_ time: Int64) throws -> Double {
        guard time >= 0 else { throw CardError(.other, "an exchange of the C program failed") }
        return Double(time)
    }

    /// Measures an APDU through SmartCardUSB, against C whose transfers are submitted as ours are, and against libusb's synchronous
    /// calls.
    static func usb() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = promptReader()
        let counted = CountedDevice(device)
        if let card = VirtualCards.named("visa") { device.insert(card) }
        try host.plug(counted)
        guard let reader = try await USBReaders().readers().first else { throw CardError(.noReader) }
        let command = selectPPSE.bytes
        let rounds = 20
        // Only one of the two can hold the interface, so they alternate in blocks; the median of a block is its time.
        func plain(hasThread: Bool) throws -> Double {
            guard let baseline = baseline_usb_open(hasThread ? 1 : 0) else {
                throw CardError(.other, "the C program finds no reader")
            }
            defer { baseline_usb_close(baseline) }
            return median(
                try (0..<rounds).map { _ in try checked(baseline_usb_transmit(baseline, command, command.count)) })
        }
        func ours(_ body: (any CardConnection) async throws -> Void) async throws {
            let card = try await reader.connect()
            try await body(card)
            await card.disconnect(.leave)
            await reader.close()
        }
        try await ours { card in
            try await printTransfers("usb", of: counted, command: "SmartCardUSB, an APDU", limit: 2) {
                _ = try await card.transmit(selectPPSE)
            }
        }
        if !Limit.isGate {
            func block() async throws -> Double {
                var times: [Double] = []
                try await ours { card in
                    for _ in 0..<rounds { times.append(try await time { _ = try await card.transmit(selectPPSE) }) }
                }
                return median(times)
            }
            let asOurs = try await Comparison(.time, limit: usbLimit) {
                try plain(hasThread: true)
            } _: {
                try await block()
            }
            report(asOurs, "C with libusb's events on a thread", "SmartCardUSB, an APDU", limit: usbLimit)
            let synchronous = try await Comparison(.time) {
                try plain(hasThread: false)
            } _: {
                try await block()
            }
            report(synchronous, "C with libusb_bulk_transfer", "SmartCardUSB, an APDU", limit: nil)
        }
        device.remove()
        try await events(of: reader, device, name: "usb")
        await reader.close()
    }

    private static let usbLimit = 1.1

    /// Measures an APDU through SmartCardPCSC, against C with SCardTransmit on a thread of its own, and on the calling thread.
    static func pcsc() async throws {
        let host = try UMockdevHost()
        let device = promptReader()
        let counted = CountedDevice(device)
        if let card = VirtualCards.named("visa") { device.insert(card) }
        try host.plug(counted)
        let service = try PrivatePCSCD(.usb(host))
        defer { service.stop() }
        try service.waitForReader(withCard: true)
        for (name, value) in service.environment { setenv(name, value, 1) }
        guard let reader = try await PCSCService().readers().first else { throw CardError(.noReader) }
        let card = try await reader.connect()
        let command = selectPPSE.bytes
        guard let baseline = baseline_scard_open() else { throw CardError(.other, "the C program finds no card") }
        try await printTransfers("pcsc", of: counted, command: "SmartCardPCSC, an APDU", limit: 2) {
            _ = try await card.transmit(selectPPSE)
        }
        if !Limit.isGate {
            let rounds = 20
            typealias Transmit = (OpaquePointer, UnsafePointer<UInt8>, Int) -> Int64
            func plain(_ transmit: Transmit) throws -> Double {
                median(try (0..<rounds).map { _ in try checked(transmit(baseline, command, command.count)) })
            }
            func ours() async throws -> Double {
                var times: [Double] = []
                for _ in 0..<rounds { times.append(try await time { _ = try await card.transmit(selectPPSE) }) }
                return median(times)
            }
            let asOurs = try await Comparison(.time, limit: pcscLimit) {
                try plain { baseline_scard_transmit($0, $1, $2) }
            } _: {
                try await ours()
            }
            report(asOurs, "C with SCardTransmit on a thread of its own", "SmartCardPCSC, an APDU", limit: pcscLimit)
            let blocking = try await Comparison(.time) {
                try plain { baseline_scard_transmit_blocking($0, $1, $2) }
            } _: {
                try await ours()
            }
            report(blocking, "C with SCardTransmit", "SmartCardPCSC, an APDU", limit: nil)
        }
        baseline_scard_close(baseline)
        await card.disconnect(.leave)

        device.remove()
        try await events(of: reader, device, name: "pcsc")
    }

    private static let pcscLimit = 1.03

    /// Prints the transfers over USB that `body` makes.
    static func printTransfers(
        _ name: String, of device: CountedDevice, command: String, limit: Int, rounds: Int = 100,
        _ body: () async throws -> Void
    ) async throws {
        try await body()
        let before = device.transfers
        for _ in 0..<rounds { try await body() }
        let transfers = (device.transfers - before + rounds / 2) / rounds
        print("\(name): \(command) takes \(transfers) transfers" + Limit.verdict(atMost: limit, transfers))
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
        )

        // Alternates five seconds without a user of the reader and five seconds with a task that waits for a card.
        var added: [Double] = []
        for _ in 0..<3 {
            let without = try await wakeUps(in: .seconds(5))
            let waiting = Task { try await reader.waitForCard() }
            try await Task.sleep(for: .milliseconds(500))
            added.append(Double(try await wakeUps(in: .seconds(5)) - without) / 5)
            waiting.cancel()
            _ = await waiting.result
        }
        let more = max(median(added), 0)
        print(
            "\(name): waiting for a card wakes the process \(tenths(more)) times a second"
                + Limit.verdict("0.5", isKept: more <= 0.5))

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
        print("\(name): a card is seen \(microseconds(median(delays))) after it comes")
    }
}

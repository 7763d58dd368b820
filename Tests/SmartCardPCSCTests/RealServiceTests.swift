import SmartCard
import SmartCardPCSC
import Synchronization
import TestSupport
import Testing

extension PCSCTests {
    /// Debian's pcscd with vsmartcard's virtual readers, and a card made up here.
    @Suite(.enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    struct RealService {
        let daemon: PrivatePCSCD
        let reader = PCSCReader(name: "Virtual PCD 00 00")

        init() async throws {
            daemon = try await PrivatePCSCD()
            PCSCSocket.point(to: daemon.socket)
        }

        /// Answers a command with its length in two bytes, as many bytes of A5 as its P1 P2 say, and 9000.
        func insertCard(_ atr: [UInt8] = desfireATR) async throws -> PrivatePCSCDCard {
            try await PrivatePCSCDCard(port: daemon.port, atr: atr) { command in
                guard command.count >= 4 else { return [0x67, 0x00] }
                let count = Int(command[2]) << 8 | Int(command[3])
                return [UInt8(truncatingIfNeeded: command.count >> 8), UInt8(truncatingIfNeeded: command.count)]
                    + [UInt8](repeating: 0xA5, count: count) + [0x90, 0x00]
            }
        }

        func connect(
            sharing: CardSharing = .shared, sharingTimeout: Duration = .seconds(60)
        ) async throws -> PCSCCard {
            _ = try await reader.waitForCard()
            return try await reader.connect(sharing: sharing, sharingTimeout: sharingTimeout)
        }

        let echo = CommandAPDU(unchecked: (0x00, 0xB0, 0x00, 0x00), ne: 256)
        /// The same in the class of PC/SC part 3, for the reader.
        let readerEcho: [UInt8] = [0xFF, 0xB0, 0x00, 0x00, 0x00]

        @Test func listsAndMonitors() async throws {
            defer { daemon.stop() }
            #expect(try await PCSCService().readers().map(\.name) == ["Virtual PCD 00 00", "Virtual PCD 00 01"])
            let events = Collector(PCSCService().events())
            let second = PCSCReader(name: "Virtual PCD 00 01")
            #expect(try await events.first(2) == [.readerAttached(reader), .readerAttached(second)])
            let card = try await insertCard()
            #expect(try await events.first(3).last == .cardInserted(reader, ATR(desfireATR)))
            card.remove()
            #expect(try await events.first(4).last == .cardRemoved(reader))
            let next = try await insertCard(ultralightATR)
            #expect(try await events.first(5).last == .cardInserted(reader, ATR(ultralightATR)))
            next.remove()
            #expect(try await events.first(6).last == .cardRemoved(reader))
        }

        @Test func exchangesOfAnyLength() async throws {
            defer { daemon.stop() }
            #expect(await cardError { _ = try await reader.connect() }?.kind == .cardAbsent)
            #expect(
                await cardError { _ = try await PCSCReader(name: "No Such Reader 00 00").connect() }?.kind
                    == .readerGone)
            let inserted = try await insertCard()
            let card = try await connect()
            #expect(card.atr.bytes == desfireATR)
            #expect(card.transmissionProtocol == .t1)
            #expect(try await card.transmit(echo).bytes == [0x00, 0x05, 0x90, 0x00])
            // 00 D6 80 00 00 4E 20 …20,000 bytes… 00 00: what goes and what comes is longer than a short APDU.
            let long = try CommandAPDU(
                cla: 0x00, ins: 0xD6, p1: 0x80, p2: 0x00, data: [UInt8](repeating: 0x5A, count: 20_000), ne: 65_536)
            let response = try await card.transmit(long)
            #expect(response.data.prefix(2) == [0x4E, 0x29], "20,009 bytes")
            #expect(response.data.count == 2 + 0x8000)
            let status = try await card.status()
            #expect(status.state.isSuperset(of: [.present, .powered]))
            #expect(status.atr.bytes == desfireATR)
            #expect(status.transmissionProtocol == .t1)
            inserted.remove()
            let error = await cardError { for _ in 0..<100 { _ = try await card.transmit(echo) } }
            #expect(error?.kind == .cardRemoved || error?.kind == .notTransacted, "\(String(describing: error))")
            try await reader.waitForRemoval()
            #expect(await cardError { _ = try await card.transmit(echo) }?.kind == .cardRemoved)
        }

        @Test func aResetByAnotherConnection() async throws {
            defer { daemon.stop() }
            let inserted = try await insertCard()
            defer { inserted.remove() }
            let (first, second) = (try await connect(), try await connect())
            await first.disconnect(.reset)
            #expect(await cardError { _ = try await second.transmit(echo) }?.kind == .cardReset)
            try await second.reconnect()
            #expect(try await second.transmit(echo).status == 0x9000)
            try await second.reset()
            #expect(second.atr.bytes == desfireATR)
            #expect(try await second.transmit(echo).status == 0x9000)
        }

        @Test func transactionsKeepOthersOut() async throws {
            defer { daemon.stop() }
            let inserted = try await insertCard()
            defer { inserted.remove() }
            let patient = try await connect()
            let hasty = try await connect(sharingTimeout: .milliseconds(50))
            try await patient.withTransaction {
                #expect(try await patient.transmit(echo).status == 0x9000)
                #expect(await cardError { _ = try await hasty.transmit(echo) }?.kind == .sharing)
                #expect(await cardError { try await hasty.withTransaction {} }?.kind == .sharing)
                // A new connection is kept waiting by pcscd itself, until this transaction ends, and can be given up.
                let late = Task { try await reader.connect(sharing: .shared) }
                try await Task.sleep(for: .milliseconds(50))
                late.cancel()
                await #expect(throws: CancellationError.self) { _ = try await late.value }
                // The reader is reached all the same, over the connection that holds it.
                #expect(try await reader.transmitToReaderWithRoute(readerEcho).route == .cardConnection)
            }
            #expect(try await hasty.withTransaction { try await hasty.transmit(echo).status } == 0x9000)
            // Both at once: one waits for the other.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for card in [patient, try await connect()] {
                    group.addTask {
                        try await card.withTransaction {
                            for _ in 0..<5 { _ = try await card.transmit(echo) }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }

        @Test func exclusiveConnections() async throws {
            defer { daemon.stop() }
            let inserted = try await insertCard()
            defer { inserted.remove() }
            let exclusive = try await connect(sharing: .exclusive)
            #expect(try await exclusive.transmit(echo).status == 0x9000)
            let refused = await cardError {
                _ = try await reader.connect(sharing: .shared, sharingTimeout: .milliseconds(50))
            }
            #expect(refused?.kind == .sharing)
            #expect(
                try await Collector(reader.slotStates()).first(1) == [.card(ATR(desfireATR), exclusivelyHeld: true)])
            // Who waits gets it when it is free.
            async let waiting = reader.connect(sharing: .shared)
            try await Task.sleep(for: .milliseconds(30))
            await exclusive.disconnect(.leave)
            #expect(try await waiting.transmit(echo).status == 0x9000)
        }

        /// vsmartcard's driver has no control codes and no attributes, and spoils those that pcscd has.
        @Test func featuresAttributesAndTheReaderItself() async throws {
            defer { daemon.stop() }
            let inserted = try await insertCard()
            defer { inserted.remove() }
            _ = try await reader.waitForCard()
            let direct = try await reader.connect(sharing: .direct)
            #expect(try await direct.attribute(.friendlyName) == nil)
            #expect(try await direct.attribute(.vendorName) == nil)
            #expect(try await direct.features() == [:])
            #expect(await cardError { _ = try await direct.control(0x4200_0001, echo.bytes) }?.kind == .unsupported)
            await direct.disconnect(.leave)
            let (answer, route) = try await reader.transmitToReaderWithRoute(readerEcho)
            #expect(answer == [0x00, 0x05, 0x90, 0x00])
            #expect(route == .directConnection)
            // One of another class would reach the card; it goes by escape, which this driver has not.
            #expect(await cardError { _ = try await reader.transmitToReader(echo.bytes) }?.kind == .unsupported)
            // The direct connection has not made RAW the card's protocol.
            #expect(try await reader.connect(sharing: .shared).transmissionProtocol == .t1)
        }

        /// TD1 is 80 and TD2 01: T=0 is offered first, and not meant (PC/SC part 3, 3.1.3.2.3.2).  This driver has both.
        @Test(arguments: [desfireATR, ultralightATR, [0x3B, 0x80, 0x80, 0x01, 0x01]])
        func aContactlessCardGetsT1OfAReaderThatHasBoth(_ atr: [UInt8]) async throws {
            defer { daemon.stop() }
            #expect(atr[2...3] == [0x80, 0x01])
            let inserted = try await insertCard(atr)
            let first = try await connect()
            #expect(first.transmissionProtocol == .t1)
            await first.disconnect(.reset)
            let other = try await reader.connect(sharing: .shared, protocols: .t0)
            #expect(other.transmissionProtocol == .t0)
            await other.disconnect(.reset)
            let second = try await reader.connect() as? PCSCCard
            #expect(second?.transmissionProtocol == .t1)
            #expect(try await second?.transmit(echo).status == .success)
            await second?.disconnect(.leave)
            inserted.remove()
        }

        @Test func theServiceIsKilledAndStartedAgain() async throws {
            let inserted = try await insertCard()
            let card = try await connect()
            let fragile = Collector(PCSCService().events())
            let enduring = Collector(PCSCService().events(waitForService: true))
            // attached, inserted, attached; or with a usage in between
            #expect(try await eventually { enduring.elements.contains(.cardInserted(reader, ATR(desfireATR))) })
            daemon.kill()
            #expect(try await eventually { fragile.isOver })
            #expect((fragile.error as? CardError)?.kind == .noService)
            let away = PCSCEvent.serviceUnavailable(PCSCServiceFailure(CardError(.noService)))
            #expect(try await eventually { enduring.elements.last == away })
            #expect(await cardError { _ = try await card.transmit(echo) }?.kind == .noService)
            #expect(await cardError { _ = try await PCSCService().readers() }?.kind == .noService)
            inserted.remove()

            let again = try await PrivatePCSCD()
            defer { again.stop() }
            PCSCSocket.point(to: again.socket)
            #expect(
                try await eventually {
                    enduring.elements.last == .readerAttached(PCSCReader(name: "Virtual PCD 00 01"))
                })
            #expect(enduring.elements.filter { $0 == away }.count == 1)
            #expect(try await PCSCService().readers().count == 2)
        }
    }
}

import EMVContactless
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// Virtual cards that leave the field at one command or another: the driver, Entry Point, Kernel 3.
@Suite struct LostCardTests {
    /// The commands of `visa-offline` when it is not lost: directory, application, decision, four records.
    private static let commands = ["A4", "A4", "A8", "B2", "B2", "B2", "B2"]

    private func terminal() throws -> ContactlessTerminal {
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices { configuration.combinations[index].floorLimit = nil }
        var keys = CAPublicKeys()
        for key in VirtualCards.certificationAuthorityKeys {
            keys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum))
        }
        return ContactlessTerminal(
            EntryPoint(configuration: try configuration.validated(for: [3: Kernel3.self]), keys: keys))
    }

    /// Presented again it is approved.  In the selection Entry Point asks for it again (Book B, 3.3.3.7), from GET PROCESSING
    /// OPTIONS on the kernel (Book C-3, 4.1.1.2).
    @Test(.timeLimit(.minutes(5)), arguments: 0..<7, [false, true])
    func aCardThatIsLostOnce(_ lost: Int, _ isHeard: Bool) async throws {
        let field = LosingField(try #require(VirtualCards.named("visa-offline")), [lost], isHeard: isHeard)
        let shown = Mutex<[UserInterfaceRequest.Message?]>([])
        let report = try await terminal().perform(purchase(12_34), in: field) { request in
            shown.withLock { $0.append(request.message) }
        }
        expectEqual(report.outcome.kind, .approved, "\(report.outcome.reason)")
        let instructions = report.exchanges.map { [$0.header[1]].hex }
        let expected: [String] = Self.commands.prefix(lost + 1) + Self.commands
        expectEqual(instructions, expected)
        expectEqual(report.exchanges.indices.filter { report.exchanges[$0].status == nil }, [lost])
        expectEqual(
            shown.withLock { $0 },
            [
                .presentCard, lost < 2 ? .presentCard : .presentCardAgain, .cardReadRemoveCard, .approved,
            ])
    }

    /// Lost at the same command each time, it is given up, and nothing has been approved.
    @Test(.timeLimit(.minutes(5)), arguments: 0..<7)
    func aCardThatIsAlwaysLost(_ lost: Int) async throws {
        let losses = (0..<100).map { lost + $0 * (lost + 1) }
        let field = LosingField(try #require(VirtualCards.named("visa-offline")), Set(losses), isHeard: true)
        let last = Mutex<UserInterfaceRequest?>(nil)
        let report = try await terminal().perform(purchase(12_34), in: field) { request in
            last.withLock { $0 = request }
        }
        #expect(report.outcome.kind == .endApplication && report.outcome.reason == "the card cannot be read")
        #expect(report.outcome.start == nil && report.outcome.dataRecord == nil)
        expectEqual(report.exchanges.count, EntryPoint.maximumActivations * (lost + 1))
        #expect(last.withLock { $0 } == UserInterfaceRequest(.insertSwipeOrTryAnotherCard, .readyToRead))
    }

    /// After the issuer has answered: before EXTERNAL AUTHENTICATE the card is asked for again; from then on what it has been
    /// told is not told twice.
    @Test(
        .timeLimit(.minutes(5)),
        arguments: [
            // Lost command, instructions after the online request, 9F5B
            (3, "A4 A4 82 DA 1E", "11 00000000  11 11223344"), (4, "A4 82", "00 00000000  00 11223344"),
            (5, "A4 82 DA", "11 00000000  00 11223344"), (6, "A4 82 DA 1E", "11 00000000  11 11223344"),
        ])
    func aCardThatIsLostDuringTheUpdate(_ lost: Int, _ instructions: String, _ results: String) async throws {
        let field = LosingField(try #require(VirtualCards.named("visa-update")), [lost], isHeard: true)
        // The card answers 6300 to these, and 6985 to the scripts.
        let response = OnlineResponse(
            issuerAuthenticationData: try wire("38 66 19 6A 29 76 8A C9 30 35"),
            scripts: [
                try wire("71 10 86 0E 04 DA 9F 17 09 05 BC 30 79 22 A2 60 62 7C"),
                try wire("72 16 9F 18 04 11 22 33 44 86 0D 84 1E 00 00 08 C2 AD 41 B6 89 45 FB 76"),
            ])
        let report = try await terminal().perform(
            purchase(12_34), in: field, authorize: { _ in response }, show: { _ in })
        expectEqual(report.exchanges.dropFirst(3).map { [$0.header[1]].hex }.joined(separator: " "), instructions)
        expectEqual(report.outcome.kind, .endApplication)
        expectEqual(report.onlineRequest?.outcome.kind, .onlineRequest)
        expectEqual(report.outcome.discretionaryData?[0x9F5B]?.hex, try wire(results).hex)
    }
}

/// A field with one card in it, which is put back whenever the field is switched on.
private final class LosingField: ContactlessField {
    private let card: any VirtualCard
    private let lost: Set<Int>
    private let isHeard: Bool
    private let count = Mutex(0)

    /// - Parameters:
    ///   - lost: the commands, counted from 0 through the whole transaction, at which the card leaves.
    ///   - isHeard: whether it has still carried out the command.
    init(_ card: any VirtualCard, _ lost: Set<Int>, isHeard: Bool) {
        (self.card, self.lost, self.isHeard) = (card, lost, isHeard)
    }

    func activate() async throws -> FieldEvent {
        card.reset()
        return .card(Channel(field: self))
    }

    func deactivate(for duration: Duration) async throws {}
    func waitForRemoval() async throws {}

    private struct Channel: CardChannel {
        let field: LosingField

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            let number = field.count.withLock { count in
                defer { count += 1 }
                return count
            }
            let isLost = field.lost.contains(number)
            let response = isLost && !field.isHeard ? nil : field.card.exchange(command.bytes)
            guard !isLost, let response else { throw CardError(.cardRemoved) }
            return try ResponseAPDU(response)
        }
    }
}

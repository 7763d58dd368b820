import EMVContactless
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// EMV Contactless Book C-3, 6, from the online request to what the card has made of the issuer's answer: a virtual card on a
/// virtual reader, Entry Point, Kernel 3.  ARPC and MACs were computed with PyEMV 1.5.0 for the keys of the card file, amount
/// 12.34 and unpredictable number 11223344.
@Suite struct IssuerUpdateTests {
    private static let putData = "71 10 86 0E 04 DA 9F 17 09 05 BC 30 79 22 A2 60 62 7C"
    private static let block = "72 16 9F 18 04 11 22 33 44 86 0D 84 1E 00 00 08 C2 AD 41 B6 89 45 FB 76"

    private func transaction() throws -> Transaction {
        let date = try #require(CalendarDate(year: 2026, month: 11, day: 21))
        let time = try #require(TerminalTime(date))
        let euro = try #require(Currency["EUR"])
        return try #require(
            Transaction(
                .purchase, amount: 12_34, currency: euro, time: time, unpredictableNumber: [0x11, 0x22, 0x33, 0x44]))
    }

    /// The right ARPC, and a wrong one: the card says 6300, and then takes no script; the kernel goes on all the same
    /// (6.2.1.1).
    @Test(arguments: [
        ("38 66 19 6A 29 76 8A C9 30 30", "9000 9000 9000", "20 00000000 20 11223344", "9F1701056283"),
        ("38 66 19 6A 29 76 8A C9 30 35", "6300 6985 6985", "11 00000000 11 11223344", "9F1701039000"),
    ])
    func theCardIsToldWhatTheIssuerSaid(
        _ data: String, _ statuses: String, _ results: String, _ expected: String
    ) async throws {
        let card = try #require(VirtualCards.named("visa-update"))
        let reader = VirtualReader(SoftwareACR122U())
        reader.device.insert(card)
        let response = OnlineResponse(
            authorizationResponseCode: Array("00".utf8), issuerAuthenticationData: try wire(data),
            scripts: [try wire(Self.putData), try wire(Self.block)])
        let asked = Mutex<FinalOutcome?>(nil)
        let shown = Mutex<[UserInterfaceRequest.Message?]>([])
        let field = CardReaderField(reader, patience: .seconds(30))
        let report = try await ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Kernel3.self]))
        )
        .perform(
            transaction(), in: field,
            authorize: { outcome in
                asked.withLock { $0 = outcome }
                return response
            },
            show: { request in shown.withLock { $0.append(request.message) } })
        await field.release(.leave)

        let request = try #require(asked.withLock { $0 })
        #expect(request.outcome.kind == .onlineRequest && request.outcome.start == .b)
        expectEqual(request.outcome.dataRecord?[0x9F26]?.hex, "C7C5A68F187C18C6")
        expectEqual(report.onlineRequest, request)
        #expect(
            report.exchanges.map(\.header.hex) == [
                "00A40400", "00A40400", "80A80000",  // directory, application, decision
                "00A40400", "00820000", "04DA9F17", "841E0000",  // the same application once more, without directory
            ])
        let status = report.exchanges.suffix(3).compactMap(\.status).map { [$0.sw1, $0.sw2].hex }
        expectEqual(status.joined(separator: " "), statuses)
        expectEqual(report.outcome.kind, .endApplication)
        expectEqual(report.outcome.discretionaryData?[0x9F5B]?.hex, try wire(results).hex)
        expectEqual(
            shown.withLock { $0 },
            [
                .presentCard, .cardReadRemoveCard, .authorizing, .presentCardAgain, .cardReadRemoveCard,
            ])
        // What is left: the PIN try counter, and whether the application is blocked.
        let select = try #require(card.exchange(try wire("00 A4 04 00 07 A0 00 00 00 03 10 10 00")))
        let counter = try #require(card.exchange(try wire("80 CA 9F 17 00")))
        expectEqual(counter.dropLast(2).hex + select.suffix(2).hex, expected)
    }

    /// A card without the bit in its CTQ is not presented again.
    @Test func notForThisCard() async throws {
        let file = try CardFile(parsing: "variant visa-update \"without issuer update\" {\n ctq 0000\n}\n")
        let reader = VirtualReader(SoftwareACR122U())
        reader.device.insert(file.makeCard())
        let field = CardReaderField(reader, patience: .seconds(30))
        let data = try wire("38 66 19 6A 29 76 8A C9 30 30")
        let report = try await ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Kernel3.self]))
        )
        .perform(
            transaction(), in: field, authorize: { _ in OnlineResponse(issuerAuthenticationData: data) },
            show: { _ in })
        await field.release(.leave)
        #expect(report.outcome.kind == .onlineRequest && report.exchanges.count == 3)
    }
}

import Foundation
import ProximityReader
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// A virtual reader that fails where it is told to.
private final class FailingReader: CardReader {
    enum Place: Sendable {
        case slot
        case connection
        /// A command to the reader that has these bytes in it.
        case command([UInt8])
    }

    let identity: ReaderIdentity
    let device = SoftwareACR122U()
    let failure = Mutex<(place: Place, error: CardError)?>(nil)
    let firmware: String?
    private let reader: VirtualReader

    init(_ name: String, firmware: String? = nil) {
        identity = ReaderIdentity(name: name, backend: .virtual)
        self.firmware = firmware
        reader = VirtualReader(device)
    }

    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        if let failure = failure.withLock({ $0 }), case .slot = failure.place {
            return AsyncThrowingStream<SlotState, any Error> { $0.finish(throwing: failure.error) }
        }
        return reader.slotStates()
    }

    func connect() async throws -> any CardConnection {
        if let failure = failure.withLock({ $0 }), case .connection = failure.place { throw failure.error }
        return try await reader.connect()
    }

    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        if let firmware, command.starts(with: [0xFF, 0x00, 0x48]) { return Array(firmware.utf8) }
        if let failure = failure.withLock({ $0 }), case .command(let bytes) = failure.place,
            command.dropFirst(5).starts(with: bytes) || command.starts(with: bytes)
        {
            throw failure.error
        }
        return try await reader.transmitToReader(command)
    }
}

/// The table of conditions on Linux and Apple's cases, row for row.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct ConditionTests {
    private static let acr122u = "ACS ACR122U PICC Interface 00 00"
    private static let other = "Another Reader 00 00"

    @Test(
        "what a reader's error is while it is being prepared",
        arguments: [
            (CardError(.noReader), "unsupported"),
            (CardError(.readerGone, "LIBUSB_ERROR_NO_DEVICE"), "unsupported"),
            (CardError(.noService, "SCARD_E_NO_SERVICE 0x8010001D"), "serviceConnectionError"),
            (CardError(.versionMismatch), "serviceConnectionError"),
            (CardError(.unsupported, "an unknown chip"), "modelNotSupported"),
            (CardError(.protocolMismatch), "modelNotSupported"),
            (CardError(.readerBusy, "the kernel driver pn533_usb: LIBUSB_ERROR_BUSY"), "readerBusy"),
            (CardError(.sharing, "SCARD_E_SHARING_VIOLATION 0x8010000B"), "readerBusy"),
            (CardError(.permissionDenied, "/dev/bus/usb/001/002 is not writable"), "notAllowed"),
            (CardError(.readerTimeout), "prepareFailed"),
            (CardError(.other, "it smells"), "prepareFailed"),
        ])
    func preparing(_ error: CardError, _ expected: String) async throws {
        let reader = FailingReader(Self.other)
        let bench = try await Bench { $0.reader = .reader(reader) }
        reader.failure.withLock { $0 = (.slot, error) }
        await expect(expected) { _ = try await bench.reader.prepare(using: bench.token()) }
        // And when that is mended, it is well.
        reader.failure.withLock { $0 = nil }
        _ = try await bench.reader.prepare(using: bench.token())
    }

    @Test("firmware before 2 is not supported, and later firmware is")
    func firmware() async throws {
        for (firmware, isSupported) in [("ACR122U102", false), ("ACR122U203", true)] {
            let reader = FailingReader(Self.acr122u, firmware: firmware)
            let bench = try await Bench { $0.reader = .reader(reader) }
            if isSupported {
                _ = try await bench.reader.prepare(using: bench.token())
            } else {
                await expect("modelNotSupported") { _ = try await bench.reader.prepare(using: bench.token()) }
            }
        }
    }

    @Test(
        "what a reader's error is while a card is read",
        arguments: [
            (CardError(.readerGone, "LIBUSB_ERROR_NO_DEVICE"), "readerNotAvailable"),
            (CardError(.noReader), "readerNotAvailable"),
            (CardError(.noService, "SCARD_E_NO_SERVICE 0x8010001D"), "readerServiceConnectionError"),
            (CardError(.versionMismatch), "readerServiceConnectionError"),
            (CardError(.permissionDenied), "readNotAllowed"),
            (CardError(.sharing, "SCARD_E_SHARING_VIOLATION 0x8010000B"), "readerSessionBusy"),
            (CardError(.readerBusy, "LIBUSB_ERROR_BUSY"), "readerSessionBusy"),
            (CardError(.other, "it smells"), "readerServiceError"),
        ])
    func reading(_ error: CardError, _ expected: String) async throws {
        let reader = FailingReader(Self.other)
        let bench = try await Bench { $0.reader = .reader(reader) }
        let session = try await bench.reader.prepare(using: bench.token())
        reader.failure.withLock { $0 = (.connection, error) }
        reader.device.insert(try #require(VirtualCards.named("visa")))
        await expect(expected) { _ = try await session.readPaymentCard(purchase) }
    }

    @Test(
        "a field that cannot be switched on, and a chip that cannot be set up, is a reader that is not ready for cards",
        arguments: [
            // RFConfiguration and SetParameters of a PN532; the ACR122U's PICC operating parameter.
            ([0xD4, 0x32], CardError(.notTransacted), "readerInitializationFailed"),
            ([0xD4, 0x12], CardError(.malformedAnswer), "readerInitializationFailed"),
            ([0xFF, 0x00, 0x51], CardError(.unsupported), "readerInitializationFailed"),
            ([0xD4, 0x32], CardError(.readerGone), "readerNotAvailable"),
            ([0xD4, 0x32], CardError(.sharing), "readerSessionBusy"),
        ] as [([UInt8], CardError, String)])
    func initializing(_ command: [UInt8], _ error: CardError, _ expected: String) async throws {
        let reader = FailingReader(Self.acr122u)
        let bench = try await Bench { $0.reader = .reader(reader) }
        let session = try await bench.reader.prepare(using: bench.token())
        reader.failure.withLock { $0 = (.command(command), error) }
        await expect(expected) { _ = try await session.readPaymentCard(purchase) }
    }

    @Test("a terminal that nobody holds ends: another has reader and store")
    func dropped() async throws {
        let bench = try await Bench {
            $0.storeAndForward = .init(limits: ["EUR": .init(perPayment: 15, total: 100)])
        }
        var reader: PaymentCardReader? = PaymentCardReader(
            terminal: PaymentTerminal(try bench.configuration.validated()))
        weak let terminal = reader?.terminal
        var session = try await reader?.prepare(using: bench.token())
        session = try await reader?.prepareStoreAndForward()
        try bench.insert("visa")
        let customer = Task { [events = reader?.events, device = bench.device] in
            guard let events else { return }
            for await event in events { if case .removeCard = event { device.remove() } }
        }
        #expect(try await session?.readPaymentCard(purchase).outcome == .success)
        #expect(terminal != nil)
        // The session keeps it.
        reader = nil
        #expect(try await session?.cancelRead() == false)
        session = nil
        try await wait(for: "the end of the terminal") { terminal == nil }
        await customer.value
        // As ProximityReader's store has it: one at a time.
        let other = PaymentCardReader(terminal: PaymentTerminal(try bench.configuration.validated()))
        #expect(try await other.prepareStoreAndForward().status().readCount == 1)
    }

    private final class Names: Sendable {
        let all = Mutex<[String]>([])
    }

    private protocol Reading: Sendable {
        func read(_ session: PaymentCardReaderSession, _ names: Names) async throws
    }

    /// Calls what is deprecated, which is no warning by way of the protocol.
    private struct HandlerReading: Reading {
        @available(*, deprecated)
        func read(_ session: PaymentCardReaderSession, _ names: Names) async throws {
            _ = try await session.readPaymentCard(purchase) { event in names.all.withLock { $0.append(event.name) } }
        }
    }

    @Test("the deprecated handler is told of its read alone, and of all of it")
    func handler() async throws {
        var options = PaymentCardReader.Options()
        options.returnReadResultImmediately = true
        let bench = try await Bench(options: options)
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        try bench.insert("visa")
        _ = try await session.readPaymentCard(purchase)
        let names = Names()
        let reading: any Reading = HandlerReading()
        let second = Task { try await reading.read(session, names) }
        try await log.wait(for: "removeCard", 2)
        // The first read's end comes during the second.
        bench.device.remove()
        try await log.wait(for: "readyForTap", 2)
        #expect(await log.names.contains("userInterfaceDismissed"))
        try bench.insert("visa")
        try await log.wait(for: "readCompleted", 2)
        bench.device.remove()
        try await second.value
        #expect(names.all.withLock { $0 } == ["removeCard", "readyForTap", "cardDetected", "removeCard", "completed"])
    }

    @Test(
        "whether a card is effective is told by its own date, and one that is not is not stored",
        arguments: [
            ("240101", PaymentCardReadResult.CardEffectiveState.active), ("491231", .inactive), ("251301", .invalid),
        ])
    func effective(_ date: String, _ state: PaymentCardReadResult.CardEffectiveState) async throws {
        let bench = try await Bench {
            $0.storeAndForward = .init(limits: ["EUR": .init(perPayment: 15, total: 100)])
        }
        let text = try #require(VirtualCards.all.first { $0.name == "visa" }).text
        let dated = text.replacing("5F24 311231 ", with: "5F25 \(date)\n5F24 311231 ")
        #expect(dated != text)
        func present() throws {
            bench.device.remove()
            let card = try CardFile(parsing: dated).makeCard()
            bench.device.insert(card)
            Task { [events = bench.reader.events, device = bench.device] in
                for await event in events { if case .removeCard = event { return device.remove(card) } }
            }
        }
        let session = try await bench.reader.prepare(using: bench.token())
        try present()
        let result = try await session.readPaymentCard(purchase)
        #expect(result.cardEffectiveState == state)
        // EMV Contactless Book C-3, Annex B: the data record does not have it.
        #expect(try bench.open(result)[0x5F25] == nil)
        let storing = try await bench.reader.prepareStoreAndForward()
        try present()
        if state == .active {
            _ = try await storing.readPaymentCard(purchase)
        } else {
            await expect("readNotAllowed") { _ = try await storing.readPaymentCard(purchase) }
        }
    }

    @Test("the tags of the general card data are those that are documented")
    func generalData() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.present("visa")
        let result = try await session.readPaymentCard(purchase)
        let data = try #require(result.generalCardData.flatMap { Data(base64Encoded: $0) })
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/ProximityReader/Documentation.docc/ProximityReader.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let sentence = try #require(text.firstRange(of: "data that is not secret: ")).upperBound
        let tags = text[sentence...].prefix { $0 != ":" }.prefix(while: { $0 != "(" }).split(separator: "\n\n")[0]
            .matches(of: #/\b[0-9A-F]{2}([0-9A-F]{2}){0,2}\b/#).map { String($0.output.0) }
        #expect(tags.count > 10)
        let given = try TLVList([UInt8](data)).map { "\($0.tag)" }
        #expect(Set(given).count == given.count && Set(given).isSubset(of: tags))
        // Cashback alone has an amount, other; of a receipt's there are those that the card gives.
        #expect(Set(tags).subtracting(given).isSubset(of: ["9F03", "50", "9F12", "9F11", "9F34", "95", "9F6E"]))
    }
}

import CardReaderAdapter
import CardReceipts
import Foundation
import Synchronization
import TestSupport
import Testing
import Waiting

/// Discovery and connection, row for row as their promises are numbered.
@Suite(.simulatedTime, .timeLimit(.minutes(10))) struct ConnectionTests {
    @Test(
        "A1: discovery gives full lists, an empty one first, and a new one with each plug", arguments: Surface.allCases)
    func a1(_ surface: Surface) async throws {
        let bench = AdapterBench([], on: surface)
        let lists = Seen(bench.service.discoveredReaders)
        try bench.service.start(bench.shop, discoveryMethod: .simulated)
        try await wait(for: "search") { await bench.service.discoveryStatus.first { _ in true } == .discovering }
        try await wait(for: "empty list") { lists.all.count == 1 }
        for (step, count) in [("A", 2), ("B", 3), ("-A", 4), ("A", 5)] {
            if step == "-A" { bench.readers.unplug("A") } else { bench.readers.plug(SimulatedReader(serial: step)) }
            try await wait(for: "list \(count)") { lists.all.count == count }
        }
        #expect(lists.all.map { $0.map(\.serial) } == [[], ["A"], ["A", "B"], ["B"], ["B", "A"]])
        // A battery is a change, too, though it is the same reader.
        bench.readers.setBattery(0.5, of: "B")
        try await wait(for: "battery") { lists.all.last?.first?.batteryLevel == 0.5 }
        #expect(lists.all.last?.last?.batteryLevel == nil)
    }

    @Test("A2: a second start is refused, and the first search goes on", arguments: Surface.allCases)
    func a2(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let reader = try await bench.find()
        let lists = Seen(bench.service.discoveredReaders)
        #expect(
            await failure { try bench.service.start(bench.shop, discoveryMethod: .simulated) }
                == "discovery(underlyingError: readerBusy)")
        bench.readers.plug(SimulatedReader(serial: "B"))
        try await wait(for: "second reader") { lists.all.last?.count == 2 }
        #expect(!lists.isOver)
        try await bench.service.connect(reader, options: nil)
        #expect(
            await failure { try bench.service.start(bench.shop, discoveryMethod: .simulated) }
                == "discovery(underlyingError: alreadyConnectedToReader)")
    }

    @Test(
        "A3: cancelDiscovery does nothing without a search, ends one, and the next may begin at once",
        arguments: Surface.allCases)
    func a3(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        try await bench.service.cancelDiscovery()
        for _ in 0..<100 {
            let lists = Seen(bench.service.discoveredReaders)
            try bench.service.start(bench.shop, discoveryMethod: .simulated)
            try await bench.service.cancelDiscovery()
            try await wait(for: "end") { lists.isOver }
        }
        #expect(try await bench.find().serial == "A")
    }

    @Test("A4: starts and cancels from many tasks at once end, with one search at most", arguments: Surface.allCases)
    func a4(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let (service, shop) = (bench.service, bench.shop)
        let states = Seen(service.discoveryStatus)
        let begun = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<200 {
                group.addTask {
                    guard index.isMultiple(of: 2) else {
                        try? await service.cancelDiscovery()
                        return false
                    }
                    return (try? service.start(shop, discoveryMethod: .simulated)) != nil
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(begun >= 1)
        try await bench.service.cancelDiscovery()
        // Each search that became one has ended before the next.
        try await wait(for: "end") { states.all.last == .idle }
        #expect(!zip(states.all, states.all.dropFirst()).contains { $0 == .discovering && $1 == .discovering })
        #expect(try await bench.find().serial == "A")
        #expect(
            await failure { try bench.service.start(bench.shop, discoveryMethod: .simulated) }
                == "discovery(underlyingError: readerBusy)")
    }

    @Test("A5: only a reader of the present search can be connected to", arguments: Surface.allCases)
    func a5(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let old = try await bench.find()
        let unknown = "connection(underlyingError: internalServiceError)"
        func tryIt(_ reader: CardReader) async -> String? {
            await failure { try await bench.service.connect(reader, options: nil) }
        }
        #expect(await tryIt(CardReader(serial: "B")) == unknown)
        try await bench.service.cancelDiscovery()
        #expect(await tryIt(old) == unknown, "the search was cancelled")
        bench.readers.unplug("A")
        try bench.service.start(bench.shop, discoveryMethod: .simulated)
        #expect(await tryIt(old) == unknown, "the new search has not found it")
        bench.readers.plug(SimulatedReader(serial: "A"))
        try await bench.service.cancelDiscovery()
        bench.readers.refuseConnections(with: .connectFailedReaderIsInUse)
        let found = try await bench.find()
        #expect(await tryIt(found) == "connection(underlyingError: connectFailedReaderIsInUse)")
        bench.readers.refuseConnections(with: nil)
        #expect(await tryIt(found) == unknown, "a failure ends the search")
        try await bench.connect()
        #expect(await tryIt(found) == "connection(underlyingError: alreadyConnectedToReader)")
    }

    enum End: CaseIterable { case connected, failed, cancelled, cleared }

    @Test(
        "A6, A7: however a search ends, its sequence ends, what it found is forgotten, and the next has its own",
        arguments: End.allCases, Surface.allCases)
    func a6(_ end: End, _ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let reader = try await bench.find()
        let lists = Seen(bench.service.discoveredReaders)
        try await wait(for: "list") { lists.all.last?.count == 1 }
        switch end {
        case .connected:
            try await bench.service.connect(reader, options: nil)
            try await bench.service.disconnect()
        case .failed:
            bench.readers.refuseConnections(with: .readerIncompatible)
            #expect(await failure { try await bench.service.connect(reader, options: nil) } != nil)
            bench.readers.refuseConnections(with: nil)
        case .cancelled: try await bench.service.cancelDiscovery()
        case .cleared: try bench.service.clear()
        }
        try await wait(for: "end") { lists.isOver }
        #expect(
            await failure { try await bench.service.connect(reader, options: nil) }
                == "connection(underlyingError: internalServiceError)")
        let next = Seen(bench.service.discoveredReaders)
        try await wait(for: "empty list") { next.all.first?.isEmpty == true }
        #expect(try await bench.find().serial == "A")
        try await wait(for: "list") { next.all.last?.count == 1 }
    }

    @Test("A6: a backend that fails ends the search with its error")
    func a6Fault() async throws {
        let service = ContactlessReaderService(
            processor: ScriptedProcessor([]), backend: BrokenReaders(), journal: .memory)
        let shop = Shop()
        let status = Seen(service.discoveryStatus)
        let lists = service.discoveredReaders
        try service.start(shop, discoveryMethod: .usb)
        #expect(
            await failure { for try await _ in lists {} } == "discovery(underlyingError: bluetoothDisabled)")
        try await wait(for: "fault") { status.all.last == .fault }
        #expect(service.status == .fault)
        try service.start(shop, discoveryMethod: .usb)
    }

    @Test(
        "A8: connectedReaders goes from none to one to none, and tells of each change of a field",
        arguments: Surface.allCases)
    func a8(_ surface: Surface) async throws {
        let bench = AdapterBench([SimulatedReader(serial: "A", batteryLevel: 0.5)], on: surface)
        let lists = Seen(bench.service.connectedReaders)
        let events = Seen(bench.service.readerEvents)
        let reader = try await bench.connect(options: CardReaderConnectionOptions(autoReconnect: false))
        #expect(reader.status.connected && reader.locationId == "shop-1")
        try await wait(for: "connection") { lists.all.count == 2 }
        for (level, count) in [(Float(0.1), 3), (0.1, 3), (0.9, 4)] {
            bench.readers.setBattery(level, of: "A")
            try await wait(for: "battery") { lists.all.count == count }
        }
        try await bench.service.disconnect()
        try await wait(for: "end") { lists.all.count == 5 }
        try await bench.connect(options: CardReaderConnectionOptions(autoReconnect: false))
        try await wait(for: "connection") { lists.all.count == 6 }
        bench.readers.unplug("A")
        try await wait(for: "end") { lists.all.count == 7 }
        #expect(lists.all.map { $0.map(\.serial) } == [[], ["A"], ["A"], ["A"], [], ["A"], []])
        #expect(lists.all.map { $0.first?.batteryLevel } == [nil, 0.5, 0.1, 0.9, nil, 0.9, nil])
        try await wait(for: "events") { events.all.count == 3 }
        #expect(events.all.map(\.text) == ["lowBattery", "lowBatteryResolved", "disconnected usbDisconnected"])
    }

    @Test("A10: a reader that is plugged in again is connected again, with a new token", arguments: Surface.allCases)
    func a10(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let states = Seen(bench.service.reconnectionEvents)
        let lists = Seen(bench.service.connectedReaders)
        try await bench.connect()
        bench.readers.unplug("A", reason: .serviceStopped)
        try await wait(for: "start") { states.all.count == 1 }
        guard case .started(serial: "A", _) = states.all[0] else { throw AdapterBench.Missing() }
        bench.readers.plug(SimulatedReader(serial: "B"))
        bench.readers.plug(SimulatedReader(serial: "A"))
        try await wait(for: "success") { states.all.count == 2 }
        guard case .succeeded(let reader) = states.all[1] else { throw AdapterBench.Missing() }
        #expect(reader.serial == "A" && reader.status.connected)
        #expect(bench.shop.tokens == 2)
        try await wait(for: "lists") { lists.all.count == 4 }
        #expect(lists.all.map { $0.map(\.serial) } == [[], ["A"], [], ["A"]])
        try await bench.payOnceMore()
    }

    @Test("A10: one that cannot be connected again is told of, and given up", arguments: Surface.allCases)
    func a10Failed(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let states = Seen(bench.service.reconnectionEvents)
        try await bench.connect()
        bench.readers.refuseConnections(with: .readerIncompatible)
        bench.readers.unplug("A")
        bench.readers.plug(SimulatedReader(serial: "A"))
        try await wait(for: "failure") { states.all.count == 2 }
        guard case .failed(serial: "A", let error) = states.all[1] else { throw AdapterBench.Missing() }
        #expect("\(error)".contains("readerIncompatible"))
        bench.readers.refuseConnections(with: nil)
        try await bench.payOnceMore()
    }

    enum GivingUp: CaseIterable { case byHandle, byDisconnect, byStart, byClear }

    @Test("A10: the wait for a reader can be given up", arguments: GivingUp.allCases, Surface.allCases)
    func a10GivenUp(_ way: GivingUp, _ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let states = Seen(bench.service.reconnectionEvents)
        try await bench.connect()
        bench.readers.unplug("A")
        try await wait(for: "start") { states.all.count == 1 }
        switch way {
        case .byHandle:
            guard case .started(_, let cancelable) = states.all[0] else { throw AdapterBench.Missing() }
            let answers = Mutex<[Bool]>([])
            for count in 1...2 {
                cancelable.cancel { result in answers.withLock { $0.append((try? result.get()) != nil) } }
                try await wait(for: "answer") { answers.withLock { $0.count } == count }
            }
            #expect(answers.withLock { $0 } == [true, false], "there is nothing to cancel twice")
        case .byDisconnect: try await bench.service.disconnect()
        case .byStart: try bench.service.start(bench.shop, discoveryMethod: .simulated)
        case .byClear: try bench.service.clear()
        }
        try await wait(for: "end") { states.all.count == 2 }
        guard case .failed(serial: "A", _) = states.all[1] else { throw AdapterBench.Missing() }
        if way == .byStart { try await bench.service.cancelDiscovery() }
        bench.readers.plug(SimulatedReader(serial: "A"))
        try await bench.connect()
        #expect(states.all.count == 2)
    }

    @Test("A10: without autoReconnect nobody waits", arguments: Surface.allCases)
    func a10Off(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let states = Seen(bench.service.reconnectionEvents)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect(options: CardReaderConnectionOptions(autoReconnect: false))
        bench.readers.unplug("A")
        try await wait(for: "event") { events.all.count == 1 }
        #expect(
            await failure { try await bench.service.disconnect() }
                == "disconnection(underlyingError: notConnectedToReader)")
        bench.readers.plug(SimulatedReader(serial: "A"))
        try await bench.connect()
        #expect(states.all.isEmpty)
    }

    @Test("A11: without a connection there is nothing to disconnect", arguments: Surface.allCases)
    func a11(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let error = "disconnection(underlyingError: notConnectedToReader)"
        #expect(await failure { try await bench.service.disconnect() } == error)
        try await bench.connect()
        try await bench.service.disconnect()
        #expect(await failure { try await bench.service.disconnect() } == error)
    }

    @Test(
        "A12: clear is refused while connected, ends a connection under way, and the next one has a new token",
        arguments: Surface.allCases)
    func a12(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        try await bench.connect()
        #expect(
            await failure { try bench.service.clear() } == "disconnection(underlyingError: alreadyConnectedToReader)")
        try await bench.service.disconnect()
        try bench.service.clear()

        let lists = Seen(bench.service.connectedReaders)
        bench.shop.set(token: .silent)
        let reader = try await bench.find()
        let attempt = Task { await failure { try await bench.service.connect(reader, options: nil) } }
        try await wait(for: "question") { bench.shop.isAsked }
        try bench.service.clear()
        bench.shop.answerLate()
        #expect(await attempt.value == "connection(underlyingError: connectionAttemptInvalidated)")
        try await wait(for: "list") { !lists.all.isEmpty }
        #expect(!lists.all.contains { !$0.isEmpty })
        bench.shop.set()
        try await bench.connect()
        #expect(bench.shop.tokens == 3)
    }

    @Test("A13: a token is fetched for each connection, and one answer of the shop counts", arguments: Surface.allCases)
    func a13(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        for count in 1...3 {
            try await bench.connect()
            #expect(bench.shop.tokens == count)
            try await bench.service.disconnect()
        }
        bench.shop.set(token: .answersTwice, location: .answersTwice)
        try await bench.connect()
        #expect(bench.shop.tokens == 4)
    }

    struct ShopClosed: Error {}

    @Test(
        "A13: what the shop fails with is the connection's error",
        arguments: [
            (Shop.Behavior.fails(ShopClosed()), Shop.Behavior.answers, "unexpectedSDKError"),
            (.answers, .fails(CardReaderConfigError.invalidPostalCode), "invalidPostalCode"),
            (
                .answers, .fails(CardReaderConfigError.incompleteStoreAddress(adminUrl: nil)),
                "incompleteStoreAddress(adminUrl: nil)"
            ),
            (.silent, .answers, "requestTimedOut"), (.answers, .silent, "requestTimedOut"),
        ] as [(Shop.Behavior, Shop.Behavior, String)], Surface.allCases)
    func a13Errors(_ row: (Shop.Behavior, Shop.Behavior, String), _ surface: Surface) async throws {
        let (token, location, error) = row
        var limits = ContactlessReaderService.TimeLimits()
        #expect(limits.token == .seconds(60))
        limits.token = .milliseconds(100)
        let bench = AdapterBench(limits: limits, on: surface)
        bench.shop.set(token: token, location: location)
        #expect(await failure { try await bench.connect() } == "connection(underlyingError: \(error))")
        await bench.service.connectedReaders.first { _ in true }.map { #expect($0.isEmpty) }
    }

    @Test("A13: a reader that is not ready in time, and a search that finds none in time, have errors of their own")
    func timeLimits() async throws {
        var limits = ContactlessReaderService.TimeLimits()
        #expect(limits.discovery == nil, "none, as the contract has it")
        limits.connection = .milliseconds(100)
        limits.discovery = .milliseconds(100)
        let slow = ContactlessReaderService(
            processor: ScriptedProcessor([]), backend: SlowReaders(), journal: .memory, limits: limits)
        let lists = slow.discoveredReaders
        try slow.start(Shop(), discoveryMethod: .usb)
        var reader: CardReader?
        for try await list in lists {
            reader = list.first
            if reader != nil { break }
        }
        let found = try #require(reader)
        #expect(
            await failure { try await slow.connect(found, options: nil) }
                == "connection(underlyingError: bluetoothConnectTimedOut)")
        let empty = AdapterBench([], limits: limits)
        let none = empty.service.discoveredReaders
        try empty.service.start(empty.shop, discoveryMethod: .simulated)
        #expect(await failure { for try await _ in none {} } == "discovery(underlyingError: bluetoothScanTimedOut)")
    }

    // MARK: The known reader

    private actor Store: KnownReaderStore {
        var serial: String?
        init(_ serial: String? = nil) { self.serial = serial }
        func knownReader() -> String? { serial }
        func remember(_ serial: String) { self.serial = serial }
    }

    @Test("A28: a reader becomes the known one when it is connected, and not before", arguments: Surface.allCases)
    func a28(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let store = Store()
        let search = ReaderSearch(bench.service, known: store)
        bench.readers.refuseConnections(with: .readerIncompatible)
        #expect(
            await failure { _ = try await search.connect(bench.shop, discoveryMethod: .simulated) { $0.first } }
                == "connection(underlyingError: readerIncompatible)")
        #expect(await store.serial == nil)
        bench.readers.refuseConnections(with: nil)
        let reader = try await search.connect(bench.shop, discoveryMethod: .simulated) { $0.first }
        #expect(await store.serial == "A")
        #expect(reader.status.remembered)
        try await bench.service.disconnect()
        #expect(try await search.connect(bench.shop, discoveryMethod: .simulated).serial == "A", "nobody has to choose")
    }

    @Test(
        "A28: the known reader is connected to once in a search; then somebody chooses, among those not skipped",
        arguments: Surface.allCases)
    func a28Once(_ surface: Surface) async throws {
        let bench = AdapterBench([SimulatedReader(serial: "A"), SimulatedReader(serial: "B")], on: surface)
        bench.readers.refuseConnections(with: .readerIncompatible)
        let asked = Mutex<[[String]]>([])
        let search = ReaderSearch(bench.service, known: Store("A"))
        let reader = try await search.connect(bench.shop, discoveryMethod: .simulated) { readers in
            asked.withLock { $0.append(readers.map(\.serial)) }
            bench.readers.refuseConnections(with: nil)
            return readers.last
        }
        #expect(reader.serial == "B")
        #expect(asked.withLock { $0 } == [["A", "B"]])
        #expect(bench.shop.tokens == 2)
        try await bench.service.disconnect()
        let other = try await ReaderSearch(bench.service, known: Store("A")).connect(
            bench.shop, discoveryMethod: .simulated, skipping: ["A"]
        ) { $0.first }
        #expect(other.serial == "B")
    }
}

/// A machine whose readers cannot be looked for.
private struct BrokenReaders: ReaderBackend {
    func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool { true }
    func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error> {
        AsyncThrowingStream { $0.finish(throwing: UnderlyingError.transportDisabled) }
    }
    func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink { throw UnderlyingError.transportDisabled }
}

/// One reader that never becomes ready.
private struct SlowReaders: ReaderBackend {
    func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool { true }
    func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error> {
        let (stream, continuation) = AsyncThrowingStream<[AttachedReader], any Error>.makeStream()
        continuation.yield([AttachedReader(CardReader(serial: "A"), handle: 0)])
        return stream
    }
    func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink {
        try await Time.sleep(for: .seconds(3600))
        throw CancellationError()
    }
}

import SmartCard
import SmartCardPCSC
import Synchronization
import TestSupport
import Testing
import Waiting

/// What a stream has delivered so far.
final class Collector<Element: Sendable & Equatable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var isOver = false
        var error: (any Error)?
    }

    let task: Task<Void, Never>

    init(_ stream: any AsyncSequence<Element, any Error> & Sendable) {
        let sink = sink
        task = Task {
            do {
                for try await element in stream { sink.state.withLock { $0.elements.append(element) } }
                sink.state.withLock { $0.isOver = true }
            } catch {
                sink.state.withLock { ($0.isOver, $0.error) = (true, error) }
            }
        }
    }

    private final class Sink: Sendable {
        let state = Mutex(State())
    }
    private let sink = Sink()

    var elements: [Element] { sink.state.withLock { $0.elements } }
    var isOver: Bool { sink.state.withLock { $0.isOver } }
    var error: (any Error)? { sink.state.withLock { $0.error } }

    /// Waits until the stream has delivered `count` elements, and returns them.
    func first(_ count: Int) async throws -> [Element] {
        try await wait(for: "element \(count)") { elements.count >= count || isOver }
        return elements
    }

    deinit { task.cancel() }
}

extension PCSCTests {
    /// The monitor, in front of the fake pcscd.
    @Suite(.simulatedTime) struct Watching {
        let reader = PCSCReader(name: acr122u.name)
        let other = FakePCSCD.Reader("Virtual PCD 00 01")

        @Test func tellsWhatIsThereAndWhatHappens() async throws {
            let daemon = try fakeService([acr122u.inserting(desfireATR), other])
            defer { daemon.stop() }
            let events = Collector(PCSCService().events())
            let otherReader = PCSCReader(name: other.name)
            #expect(
                try await events.first(3) == [
                    .readerAttached(reader), .cardInserted(reader, ATR(desfireATR)), .readerAttached(otherReader),
                ])
            #expect(try await eventually { daemon.waitingCount == 1 })
            daemon.readers = [acr122u.inserting(desfireATR).removing(), other]
            #expect(try await events.first(4).last == .cardRemoved(reader))
            #expect(try await eventually { daemon.waitingCount == 1 })
            daemon.readers = [acr122u.inserting(desfireATR).removing()]
            #expect(try await events.first(5).last == .readerRemoved(otherReader))
            #expect(try await eventually { daemon.waitingCount == 1 })
            daemon.readers = [acr122u.inserting(desfireATR).removing(), other]
            #expect(try await events.first(6).last == .readerAttached(otherReader))
            #expect(events.elements.count == 6)
        }

        /// Whoever comes just after the last one has left may find the watch between its look and its wait.
        @Test(.timeLimit(.minutes(5))) func whoComesRightAfterSomebodyIsTold() async throws {
            let daemon = try fakeService([acr122u, other])
            defer { daemon.stop() }
            for number in 0..<300 {
                for try await state in PCSCReader(name: [acr122u, other][number % 2].name).slotStates() {
                    #expect(state == .empty)
                    break
                }
            }
        }

        @Test func aReaderThatComesWhereNoneWas() async throws {
            let daemon = try fakeService()
            defer { daemon.stop() }
            let events = Collector(PCSCService().events())
            #expect(try await eventually { daemon.waitingCount == 1 })
            daemon.readers = [acr122u]
            #expect(try await events.first(1) == [.readerAttached(reader)])
        }

        /// libpcsclite 1.9.9 takes a reader for known that comes between listing and waiting.
        @Test func aReaderThatComesBetweenLookingAndWaiting() async throws {
            let daemon = try fakeService {
                $0.beforeWait = { $0.setReadersSilently([acr122u]) }
            }
            defer { daemon.stop() }
            let events = Collector(PCSCService().events())
            #expect(try await events.first(1) == [.readerAttached(reader)])
        }

        /// A swap, seen as one change: the card is there before and after, and the count has gone up by two.
        @Test func aSwappedCard() async throws {
            let before = acr122u.inserting(desfireATR)
            let daemon = try fakeService([before])
            defer { daemon.stop() }
            let events = Collector(PCSCService().events())
            let states = Collector(reader.slotStates())
            _ = try await events.first(2)
            _ = try await states.first(1)
            daemon.readers = [before.removing().inserting(desfireATR)]
            #expect(
                try await events.first(4).suffix(2) == [.cardRemoved(reader), .cardInserted(reader, ATR(desfireATR))])
            let card = SlotState.card(ATR(desfireATR), exclusivelyHeld: false)
            #expect(try await states.first(3) == [card, .empty, card])
        }

        /// The same while the count has been zero, where libpcsclite does not look at it: only the look after the wait
        /// began can tell.
        @Test func aCardSwappedBetweenLookingAndWaiting() async throws {
            var before = acr122u.inserting(desfireATR)
            before.eventCounter = 0
            let after = before.removing().inserting(ultralightATR)
            let daemon = try fakeService([before])
            defer { daemon.stop() }
            let looks = Mutex(0)
            daemon.behavior.beforeWait = { daemon in
                // The first registration belongs to the look, the second to the wait.
                if looks.withLock({ looks in
                    looks += 1; return looks == 2
                }) {
                    daemon.setReadersSilently([after])
                }
            }
            let events = Collector(PCSCService().events())
            #expect(try await events.first(4).last == .cardInserted(reader, ATR(ultralightATR)))
        }

        @Test func muteAndExclusivelyHeldCards() async throws {
            var mute = acr122u.inserting([])
            mute.state = 0x0C
            let daemon = try fakeService([mute])
            defer { daemon.stop() }
            let events = Collector(PCSCService().events())
            let states = Collector(reader.slotStates())
            #expect(try await events.first(2) == [.readerAttached(reader), .cardMute(reader)])
            #expect(try await states.first(1) == [.muteCard])
            var held = mute.removing().inserting(desfireATR)
            held.sharing = -1
            #expect(try await eventually { daemon.waitingCount == 1 })
            daemon.readers = [held]
            #expect(
                try await events.first(5).suffix(3) == [
                    .cardRemoved(reader), .cardInserted(reader, ATR(desfireATR)), .usageChanged(reader, .exclusive),
                ])
            #expect(
                try await states.first(3) == [
                    .muteCard, .empty, .card(ATR(desfireATR), exclusivelyHeld: true),
                ])
        }

        @Test func anyNumberOfSubscribersShareOneWait() async throws {
            let daemon = try fakeService([acr122u])
            defer { daemon.stop() }
            let collectors = (0..<20).map { _ in Collector(PCSCService().events()) }
            for collector in collectors { #expect(try await collector.first(1) == [.readerAttached(reader)]) }
            #expect(try await eventually { daemon.waitingCount == 1 })
            daemon.readers = [acr122u.inserting(desfireATR)]
            for collector in collectors {
                #expect(try await collector.first(2).last == .cardInserted(reader, ATR(desfireATR)))
            }
        }

        // MARK: Ending

        @Test func cancellingAWaitWakesItAndReleasesTheContext() async throws {
            let daemon = try fakeService([acr122u])
            defer { daemon.stop() }
            for round in 0..<10 {
                let states = reader.slotStates()
                let task = Task {
                    for try await state in states where state != .empty { return false }
                    return Task.isCancelled
                }
                // At times before the library waits, at times while it does.
                if round.isMultiple(of: 2) {
                    #expect(try await eventually { daemon.waitingCount == 1 })
                }
                let start = Time.now
                task.cancel()
                #expect(try await task.value)
                #expect(Time.now == start)
                #expect(try await eventually { daemon.clientCount == 0 }, "SCardCancel has ended the wait")
                #expect(Time.now == start)
            }
        }

        @Test func waitForCardIsCancelled() async throws {
            let daemon = try fakeService([acr122u])
            defer { daemon.stop() }
            let task = Task { [reader] in try await reader.waitForCard() }
            #expect(try await eventually { daemon.waitingCount == 1 })
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }

        @Test func aReaderThatLeavesEndsItsStates() async throws {
            let daemon = try fakeService([acr122u])
            defer { daemon.stop() }
            let states = Collector(reader.slotStates())
            #expect(try await states.first(1) == [.empty])
            #expect(try await eventually { daemon.waitingCount == 1 })
            daemon.readers = []
            #expect(try await eventually { states.isOver })
            #expect(states.error == nil)
            let absent = Collector(reader.slotStates())
            #expect(try await eventually { absent.isOver })
            #expect((absent.error as? CardError)?.kind == .readerGone)
        }

        // MARK: The service comes and goes

        @Test func withoutServiceAStreamFails() async throws {
            PCSCSocket.pointNowhere()
            let events = Collector(PCSCService().events())
            #expect(try await eventually { events.isOver })
            #expect((events.error as? CardError)?.kind == .noService)
        }

        @Test func theServiceStopsInAWait() async throws {
            let daemon = try fakeService([acr122u])
            let events = Collector(PCSCService().events())
            #expect(try await eventually { daemon.waitingCount == 1 })
            daemon.stop()
            #expect(try await eventually { events.isOver })
            #expect((events.error as? CardError)?.kind == .noService)
        }

        @Test func waitingForTheService() async throws {
            PCSCSocket.pointNowhere()
            let events = Collector(PCSCService().events(waitForService: true))
            let away = PCSCEvent.serviceUnavailable(PCSCServiceFailure(CardError(.noService)))
            #expect(try await events.first(1) == [away])
            // Tries, in vain, again and again.
            try await Time.sleep(for: .seconds(20))
            #expect(events.elements == [away], "said once")
            let first = try fakeService([acr122u.inserting(desfireATR)])
            #expect(
                try await events.first(3) == [away, .readerAttached(reader), .cardInserted(reader, ATR(desfireATR))])
            #expect(try await eventually { first.waitingCount == 1 })
            first.stop()
            #expect(try await events.first(6).suffix(3) == [.cardRemoved(reader), .readerRemoved(reader), away])
            let second = try fakeService([acr122u])
            defer { second.stop() }
            #expect(try await events.first(7).last == .readerAttached(reader))
            // Somebody else, who does not wait, is not kept from it.
            #expect(try await Collector(PCSCService().events()).first(1) == [.readerAttached(reader)])
        }
    }
}

extension PCSCTests {
    /// Threads against each other, and a library that looks ten times a second, in the real time.
    @Suite struct RealTime {
        let reader = PCSCReader(name: acr122u.name)

        /// Streams are cancelled while others fill: nothing deadlocks, no wait is left over, none is missing.
        @Test func subscribersComeAndGo() async throws {
            let daemon = try fakeService([acr122u])
            defer { daemon.stop() }
            let stop = Flag()
            let cards = Task.detached {
                while !stop.isSet {
                    daemon.readers = [acr122u.inserting(desfireATR)]
                    try await Task.sleep(for: .milliseconds(1))
                    daemon.readers = [acr122u]
                    try await Task.sleep(for: .milliseconds(1))
                }
            }
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask { [reader] in
                        for round in 0..<40 {
                            let task = Task { for try await _ in reader.slotStates() {} }
                            try? await Task.sleep(for: .microseconds(Int64(100 * (round % 30))))
                            task.cancel()
                            _ = await task.result
                        }
                    }
                }
            }
            stop.set()
            _ = await cards.result
            #expect(try await eventually { daemon.clientCount == 0 }, "every context is released")
            let last = Collector(reader.slotStates())
            _ = try await last.first(1)
            #expect(try await eventually { daemon.waitingCount == 1 && daemon.clientCount == 1 })
        }

        /// Between the question whether the card is free and SCardBeginTransaction somebody took it.
        @Test func aTransactionThatBeginsTooLateIsEnded() async throws {
            let isFree = Flag()
            let daemon = try fakeService([acr122u.inserting(desfireATR)]) {
                $0.begin = { isFree.isSet ? .status(0) : .status(0x8010_000B) }
            }
            defer { daemon.stop() }
            let card = try await PCSCReader(name: acr122u.name).connect(sharing: .shared)
            let task = Task { try await card.withTransaction {} }
            #expect(try await eventually { daemon.count(of: 0x07) > 0 })
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            isFree.set()
            #expect(try await eventually { daemon.count(of: 0x08) == 1 })
            #expect(try await card.transmit(.readRecord(1, sfi: 1)).status == 0x9000)
        }
    }
}

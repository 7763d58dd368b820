import Dispatch
import Logging
import SmartCard
import Synchronization
import TestSupport
import Testing
import Waiting

/// A transport that answers on a thread of its own, and says that each exchange has taken 7 ms.
private final class StampingChannel: CardChannel {
    private let responses: Mutex<[String]>

    init(_ responses: String...) { self.responses = Mutex(responses) }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let response = try ResponseAPDU(bytes(responses.withLock { $0.removeFirst() }))
        let stopwatch = ExchangeStopwatch.current
        return await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                stopwatch?.add(.milliseconds(7))
                continuation.resume(returning: response)
            }
        }
    }
}

/// A transport that does not say how long it takes.
private struct SilentChannel: CardChannel {
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try await Time.sleep(for: .milliseconds(30))
        return ResponseAPDU(status: .success)
    }
}

/// What lies between a transport and its user, and takes its time, or fails in the end.
private struct SlowLayer: CardChannel {
    let base: any CardChannel
    var error: CardError?

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let response = try await base.transmit(command)
        try await Time.sleep(for: .milliseconds(30))
        if let error { throw error }
        return response
    }
}

@Suite(.simulatedTime) struct StopwatchTests {
    private func time(_ channel: any CardChannel) async throws -> Duration {
        let stopwatch = ExchangeStopwatch()
        _ = try await stopwatch.time { try await channel.transmit(.readRecord(1, sfi: 1)) }
        return stopwatch.elapsed
    }

    @Test func whatTheTransportTellsCounts() async throws {
        #expect(try await time(StampingChannel("90 00")) == .milliseconds(7))
        #expect(ExchangeStopwatch.current == nil)
    }

    /// Through each layer, and a task of its own; what they take themselves does not count.
    @Test func throughAllLayers() async throws {
        var logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .trace
        let logged = TrafficLogLayer(WrongLeLayer(GetResponseLayer(StampingChannel("90 00"))), logger: logger)
        let layered = RecorderLayer(logged) { _ in try? await Time.sleep(for: .milliseconds(30)) }
        let channel = SlowLayer(base: TimeLimitLayer(layered, limit: .seconds(45)))
        #expect(try await time(channel) == .milliseconds(7))
    }

    /// READ RECORD, READ RECORD with the right length, GET RESPONSE.
    @Test func exchangesAreAddedUp() async throws {
        let channel = WrongLeLayer(GetResponseLayer(StampingChannel("6C 05", "61 03", "70 01 00 90 00")))
        #expect(try await time(channel) == .milliseconds(21))
    }

    @Test func aTransportThatTellsNothing() async throws {
        #expect(try await time(WrongLeLayer(GetResponseLayer(SilentChannel()))) == .milliseconds(30))
    }

    /// There was no exchange to measure, so it is all that went by.
    @Test func aCallThatFails() async throws {
        let stopwatch = ExchangeStopwatch()
        let channel = SlowLayer(base: StampingChannel("90 00"), error: CardError(.cardRemoved))
        await #expect(throws: CardError.self) {
            try await stopwatch.time { try await channel.transmit(.readRecord(1, sfi: 1)) }
        }
        #expect(stopwatch.elapsed == .milliseconds(30))
    }

    @Test func eachTimeAnew() async throws {
        let stopwatch = ExchangeStopwatch()
        #expect(stopwatch.elapsed == .zero)
        let channel = StampingChannel("90 00", "90 00")
        for _ in 0..<2 {
            _ = try await stopwatch.time { try await channel.transmit(.readRecord(1, sfi: 1)) }
            #expect(stopwatch.elapsed == .milliseconds(7))
        }
    }
}

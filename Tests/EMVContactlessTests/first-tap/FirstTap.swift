import CBaseline
import EMVContactless
import SmartCard
import SmartCardSimulator
import Synchronization

/// Prints how many files of keys and tables were read before a process's first card, and how many for it.  Then how long the host
/// takes for that card, and for the quickest of those after it, in microseconds: all between the card's activation and its GET
/// PROCESSING OPTIONS but the card's own time.  Then the host's allocations for the first card and the median of those after it,
/// to the end of the transaction.  With `inspect`, the card is read and not paid with.
@main
struct FirstTap {
    static func main() async throws {
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: .test, keys: .published))
        let inspector = CardInspector(unpredictableNumber: [1, 2, 3, 4], date: [0x26, 0x11, 0x21])
        let isInspection = CommandLine.arguments.contains("inspect")
        if !CommandLine.arguments.contains("cold") {
            if isInspection { await inspector.rehearse() } else { terminal.rehearse() }
        }
        let before = LoadedOnce.count
        var forFirst = 0
        var costs: [(time: Duration, allocations: Int)] = []
        for number in 1...20 {
            costs.append(try await isInspection ? inspect(inspector) : tap(terminal, number: number))
            if number == 1 { forFirst = LoadedOnce.count - before }
        }
        let later = costs.dropFirst()
        print(
            before, forFirst, costs[0].time / .microseconds(1), (later.map(\.time).min() ?? .zero) / .microseconds(1),
            costs[0].allocations, later.map(\.allocations).sorted()[later.count / 2])
    }

    private static func inspect(_ inspector: CardInspector) async throws -> (Duration, Int) {
        let reader = VirtualReader(SoftwareACR122U())
        guard let card = VirtualCards.named("visa") else { throw CardError(.other, "no card") }
        reader.device.insert(card)
        let connection = try await reader.connect()
        let host = HostTime()
        _ = try await inspector.inspect(host.measuring(connection))
        await connection.disconnect(.powerOff)
        return host.cost
    }

    private static func tap(_ terminal: ContactlessTerminal, number: Int) async throws -> (Duration, Int) {
        let reader = VirtualReader(SoftwareACR122U())
        guard let card = VirtualCards.named("visa") else { throw CardError(.other, "no card") }
        reader.device.insert(card)
        // What the driver and the card read once is no part of the host's time.
        let field = CardReaderField(reader)
        guard let currency = Currency["EUR"], let date = CalendarDate(year: 2026, month: 11, day: 21),
            let time = TerminalTime(date, hour: 12, minute: 34, second: 56),
            let transaction = Transaction(
                .purchase, amount: 12_34, currency: currency, time: time, unpredictableNumber: [1, 2, 3, 4],
                sequenceCounter: UInt32(number))
        else { throw CardError(.other, "no transaction") }
        let host = HostTime()
        _ = try await terminal.perform(transaction, in: field, layers: { host.measuring($0) }) { _ in }
        await field.release(.powerOff)
        return host.cost
    }
}

/// Adds up the time from each response to the next command, until GET PROCESSING OPTIONS, and all allocations meanwhile.
private final class HostTime: Sendable {
    private struct State {
        var isOver = false
        var last: ContinuousClock.Instant
        var sum = Duration.zero
        var before = baseline_allocations()
        var allocations = 0
    }

    private let state = Mutex(State(last: .now))

    /// The time until GET PROCESSING OPTIONS, and the allocations until now.
    var cost: (Duration, Int) {
        let now = baseline_allocations()
        return state.withLock { ($0.sum, $0.allocations + now - $0.before) }
    }

    func measuring(_ base: any CardChannel) -> any CardChannel {
        state.withLock { $0.last = .now }
        return Channel(base: base, host: self)
    }

    private struct Channel: CardChannel {
        let base: any CardChannel
        let host: HostTime

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            let now = baseline_allocations()
            host.state.withLock { state in
                state.allocations += now - state.before
                if !state.isOver { state.sum += .now - state.last }
                if command.ins == 0xA8 { state.isOver = true }
            }
            let response = try await base.transmit(command)
            host.state.withLock { ($0.last, $0.before) = (.now, baseline_allocations()) }
            return response
        }
    }
}

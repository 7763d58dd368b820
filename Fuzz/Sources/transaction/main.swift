import EMVContactless
import Fuzzing
import SmartCard

// The input is a card: what it answers to Entry Point and the kernels.

let entryPoint = EntryPoint(configuration: .test, kernels: Kernels.all, keys: .published)

guard let date = CalendarDate(year: 2026, month: 11, day: 21), let time = TerminalTime(date),
    let currency = Currency["EUR"],
    let transaction = Transaction(
        .purchase, amount: 1234, currency: currency, time: time, unpredictableNumber: [1, 2, 3, 4])
else { preconditionFailure("a transaction") }

fuzz { input in
    var card = HostileCard(input)
    let result = card.play(entryPoint, transaction)
    precondition(result.final != nil, "no end")
    precondition(result.commands <= 600, "\(result.commands) commands")
}

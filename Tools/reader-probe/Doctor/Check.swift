import ToolSupport

/// One check of `doctor`.
struct Check: Sendable {
    /// The stable identifier in the output.
    let id: String
    /// Judges facts, without side effects.
    let judge: @Sendable (MachineFacts) -> [Verdict]

    func finds(_ result: Verdict.Result, _ machine: MachineFacts) -> Bool {
        judge(machine).contains { $0.result == result }
    }

    static func machine(_ id: String, _ judge: @escaping @Sendable (MachineFacts) -> Verdict) -> Check {
        Check(id: id) { [judge($0)] }
    }

    /// Makes a check of every USB reader.
    static func eachDevice(
        _ id: String, _ judge: @escaping @Sendable (MachineFacts.USBDevice, MachineFacts) -> Verdict
    ) -> Check {
        Check(id: id) { machine in
            let devices = machine.usb ?? []
            guard !devices.isEmpty else { return [.skipped("no reader on the USB")] }
            return devices.map { judge($0, machine).about("\($0.place) \($0.idText)") }
        }
    }

    /// Makes a check of every reader that pcscd lists.
    static func eachReader(
        _ id: String, _ judge: @escaping @Sendable (MachineFacts.Reader, MachineFacts) -> Verdict
    ) -> Check {
        Check(id: id) { machine in
            guard !machine.readers.isEmpty else { return [.skipped("pcscd lists no reader")] }
            return machine.readers.map { judge($0, machine).about($0.name) }
        }
    }
}

/// The result of a check.
struct Verdict: Sendable {
    enum Result: String, Sendable {
        case ok
        /// The subject works now, but may fail later or for other users.
        case warning
        /// The finding prevents reading cards.
        case problem
        /// The check was not made: there is nothing to check, or an earlier problem must be solved first.
        case skipped
    }

    /// The remedy.
    enum Mending: Sendable {
        /// A complete shell command.
        case command(String)
        case advice(String)
    }

    let result: Result
    let summary: String
    var mending: Mending?
    /// The exit status for a problem.
    var exitStatus: Int32 = 5
    /// The reader concerned, if any.
    var subject: String?

    static func ok(_ summary: String) -> Verdict { Verdict(result: .ok, summary: summary) }
    static func skipped(_ summary: String) -> Verdict { Verdict(result: .skipped, summary: summary) }
    static func warning(_ summary: String, _ mending: Mending?) -> Verdict {
        Verdict(result: .warning, summary: summary, mending: mending)
    }
    static func problem(_ summary: String, _ mending: Mending, exitStatus: Int32 = 5) -> Verdict {
        Verdict(result: .problem, summary: summary, mending: mending, exitStatus: exitStatus)
    }

    func about(_ subject: String) -> Verdict {
        var verdict = self
        verdict.subject = subject
        return verdict
    }
}

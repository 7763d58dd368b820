import ToolSupport

/// One thing that `doctor` looks at.
struct Check: Sendable {
    /// What it is called in the output; does not change.
    let id: String
    /// Judges facts; does nothing else.
    let judge: @Sendable (MachineFacts) -> [Verdict]

    func finds(_ result: Verdict.Result, _ machine: MachineFacts) -> Bool {
        judge(machine).contains { $0.result == result }
    }

    static func machine(_ id: String, _ judge: @escaping @Sendable (MachineFacts) -> Verdict) -> Check {
        Check(id: id) { [judge($0)] }
    }

    /// Of every reader on the USB.
    static func eachDevice(
        _ id: String, _ judge: @escaping @Sendable (MachineFacts.USBDevice, MachineFacts) -> Verdict
    ) -> Check {
        Check(id: id) { machine in
            let devices = machine.usb ?? []
            guard !devices.isEmpty else { return [.skipped("no reader on the USB")] }
            return devices.map { judge($0, machine).about("\($0.place) \($0.idText)") }
        }
    }

    /// Of every reader that pcscd lists.
    static func eachReader(
        _ id: String, _ judge: @escaping @Sendable (MachineFacts.Reader, MachineFacts) -> Verdict
    ) -> Check {
        Check(id: id) { machine in
            guard !machine.readers.isEmpty else { return [.skipped("pcscd lists no reader")] }
            return machine.readers.map { judge($0, machine).about($0.name) }
        }
    }
}

/// What a check found.
struct Verdict: Sendable {
    enum Result: String, Sendable {
        case ok
        /// It works, and may not for long or for everybody.
        case warning
        /// It keeps cards from being read.
        case problem
        /// There was nothing to look at, or something above has to be mended first.
        case skipped
    }

    /// What to do about it.
    enum Mending: Sendable {
        /// For a shell, as it is.
        case command(String)
        case advice(String)
    }

    let result: Result
    let summary: String
    var mending: Mending?
    /// The exit status of a problem.
    var exitStatus: Int32 = 5
    /// Which reader it is about, if one.
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

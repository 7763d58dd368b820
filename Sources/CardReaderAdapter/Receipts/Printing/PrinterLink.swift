/// Where a printer is, for one that takes bytes as they are.
protocol PrinterPort: Sendable {
    /// - Throws: `PrinterCondition`, within `limit`; nothing has gone out then.
    func open(within limit: Duration) async throws(PrinterCondition) -> any PrinterLink
}

/// An open way to a printer.
///
/// When the task is cancelled, what waits ends at once as if its time was over.
protocol PrinterLink: Sendable {
    /// Sends `bytes`, for as long as the printer takes some within each `limit`, and waits until they have left.
    ///
    /// - Returns: how many it has taken at most, and what kept it from taking all.
    func send(_ bytes: [UInt8], within limit: Duration) async -> (count: Int, condition: PrinterCondition?)

    /// What the printer says; nothing when the time is over.
    func receive(within limit: Duration) async throws(PrinterCondition) -> [UInt8]

    /// What the link itself knows of the printer.
    func condition() async -> PrinterCondition?

    func close() async
}

/// What `operation` returns; nil when the time is over first, or the task is cancelled.  The operation must end when it is
/// cancelled.
func within<R: Sendable>(_ limit: Duration, _ operation: @escaping @Sendable () async -> R?) async -> R? {
    await withTaskGroup(of: R?.self) { group in
        group.addTask { await operation() }
        group.addTask {
            try? await Task.sleep(for: limit)
            return nil
        }
        defer { group.cancelAll() }
        return await group.next() ?? nil
    }
}

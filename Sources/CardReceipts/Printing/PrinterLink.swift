/// The address of a printer that accepts raw bytes.
protocol PrinterPort: Sendable {
    /// Opens the printer.
    ///
    /// - Throws: `PrinterCondition`, within `limit`; nothing has been sent then.
    func open(within limit: Duration) async throws(PrinterCondition) -> any PrinterLink
}

/// An open connection to a printer.
///
/// When the task is canceled, a wait ends at once as if its time were over.
protocol PrinterLink: Sendable {
    /// Sends `bytes`, as long as the printer accepts some within each `limit`, and waits until they have left.
    ///
    /// - Returns: the number of bytes that it has accepted at most, and the condition that kept it from accepting all.
    func send(_ bytes: [UInt8], within limit: Duration) async -> (count: Int, condition: PrinterCondition?)

    /// Receives bytes from the printer; none if the time is over.
    func receive(within limit: Duration) async throws(PrinterCondition) -> [UInt8]

    /// Returns the printer's condition as far as the link itself knows it.
    func condition() async -> PrinterCondition?

    func close() async
}

/// A receipt printer with a completion handler: the interface for apps on the CardReaderService contract.
public protocol PrinterService: Sendable {
    /// Prints one receipt.
    ///
    /// - Parameters:
    ///   - content: the receipt.
    ///   - completion: called once, on any thread.
    func printReceipt(content: ReceiptContent, completion: @escaping @Sendable (PrintingResult) -> Void)
}

extension ReceiptPrinterService {
    public func printReceipt(content: ReceiptContent, completion: @escaping @Sendable (PrintingResult) -> Void) {
        Task { completion(await printReceipt(content: content)) }
    }
}

/// A receipt printer.
///
/// Every call ends within the printer's time limits.  No call prints a second time by itself.
public protocol ReceiptPrinterService: PrinterService {
    /// Prints one receipt.
    ///
    /// A second call after a failure repeats a receipt that may already be printed: see ``PrintingFailure/progress``.
    /// Canceling the task stops printing, with ``PrintingResult/cancel(_:)``.
    func printReceipt(content: ReceiptContent) async -> PrintingResult

    /// Returns the condition that keeps the printer from printing; nil if it reports none.
    func condition() async -> PrinterCondition?
}

/// The result of printing.
public enum PrintingResult: Hashable, Sendable {
    /// The printer has received everything, and reports no problem.
    case success
    /// The task was canceled after this progress.
    case cancel(PrintingProgress)
    case failure(PrintingFailure)
}

/// The part of a receipt that was sent to the printer.
public struct PrintingProgress: Hashable, Sendable {
    /// The bytes handed over.  At most this number has reached the printer.
    public let sent: Int
    /// The bytes of the whole receipt; 0 if it was not rendered yet.
    public let total: Int

    public init(sent: Int, total: Int) { (self.sent, self.total) = (sent, total) }

    static let nothing = PrintingProgress(sent: 0, total: 0)

    /// True if something may be on paper, now or when the printer can print again.
    public var mayBePrinted: Bool { sent > 0 }
}

/// The reason for which a receipt was not printed, or perhaps not printed.
public struct PrintingFailure: Error, Hashable, Sendable {
    public let condition: PrinterCondition
    public let progress: PrintingProgress

    public init(_ condition: PrinterCondition, _ progress: PrintingProgress) {
        (self.condition, self.progress) = (condition, progress)
    }
}

/// A condition that keeps a printer from printing.
public enum PrinterCondition: Error, Hashable, Sendable {
    case paperOut, coverOpen, jam
    /// Another program uses the printer.
    case busy
    /// There is no printer at the address.
    case absent
    /// The printer is present, and set not to print.
    case offline
    /// The printer left while it was in use.
    case disconnected
    /// The printer accepts no more bytes, or does not answer.
    case silent
    case permissionDenied
    /// The printer accepts none of the formats in which a receipt can be sent.
    case formatUnsupported
    /// Another failure, in the words of the printer or of the program that makes its format.
    case failed(String)
}

extension PrinterCondition: CustomStringConvertible {
    public var description: String {
        switch self {
        case .paperOut: "the printer is out of paper"
        case .coverOpen: "the printer's cover is open"
        case .jam: "the printer is jammed"
        case .busy: "the printer is in use"
        case .absent: "there is no printer"
        case .offline: "the printer is offline"
        case .disconnected: "the printer has left"
        case .silent: "the printer does not answer"
        case .permissionDenied: "access to the printer is denied"
        case .formatUnsupported: "the printer takes no format that a receipt can be made in"
        case .failed(let reason): "the printer failed: \(reason)"
        }
    }

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch self {
        case .paperOut: "Put paper in."
        case .coverOpen: "Close the cover."
        case .jam: "Open the printer and take out the paper that is stuck; check the cutter."
        case .busy: "Wait until the other program is done; a queue of CUPS may hold the printer."
        case .absent: "Check that it is switched on and attached, and its address."
        case .offline: "Switch it on, or press its online or feed button."
        case .disconnected: "Check its cable."
        case .silent: "Switch it off and on again; a printer that never answers needs to be asked nothing."
        case .permissionDenied: "Join the group lp: sudo usermod -aG lp USER, and log in again."
        case .formatUnsupported: "Take a printer of IPP Everywhere, or one that speaks ESC/POS."
        case .failed: "Switch it off and on again."
        }
    }
}

extension PrintingFailure: CustomStringConvertible {
    /// A line: `the printer is out of paper; 812 of 1204 bytes had gone out`.
    public var description: String {
        progress.mayBePrinted
            ? "\(condition); \(progress.sent) of \(progress.total) bytes had gone out" : "\(condition)"
    }

    /// A sentence that tells a person what to do next.
    public var hint: String {
        condition.hint + (progress.mayBePrinted ? " Look whether it has printed before you print again." : "")
    }
}

/// Prints receipts, with a completion: what apps on the CardReaderService contract call.
public protocol PrinterService: Sendable {
    /// Prints one receipt.
    ///
    /// - Parameter completion: called once, on any thread.
    func printReceipt(content: ReceiptContent, completion: @escaping @Sendable (PrintingResult) -> Void)
}

extension ReceiptPrinterService {
    public func printReceipt(content: ReceiptContent, completion: @escaping @Sendable (PrintingResult) -> Void) {
        Task { completion(await printReceipt(content: content)) }
    }
}

/// Prints receipts.
///
/// Every call ends, within the limits of the printer's own; none prints a second time by itself.
public protocol ReceiptPrinterService: PrinterService {
    /// Prints one receipt.
    ///
    /// Whoever calls again after a failure prints again what ``PrintingFailure/progress`` says may have been printed.  A task
    /// that is cancelled stops printing, with ``PrintingResult/cancel(_:)``.
    func printReceipt(content: ReceiptContent) async -> PrintingResult

    /// What keeps the printer from printing now; nil if nothing does, as far as it tells.
    func condition() async -> PrinterCondition?
}

/// How printing ended.
public enum PrintingResult: Hashable, Sendable {
    /// The printer has it all, and says that nothing is wrong.
    case success
    /// The task was cancelled when so much had gone out.
    case cancel(PrintingProgress)
    case failure(PrintingFailure)
}

/// How much of a receipt had gone to the printer.
public struct PrintingProgress: Hashable, Sendable {
    /// Bytes handed over: at most so many have reached the printer.
    public let sent: Int
    /// Bytes of the whole receipt; 0 where it was not rendered yet.
    public let total: Int

    public init(sent: Int, total: Int) { (self.sent, self.total) = (sent, total) }

    static let nothing = PrintingProgress(sent: 0, total: 0)

    /// Whether there may be something on paper, now or when the printer can print again.
    public var mayBePrinted: Bool { sent > 0 }
}

/// Why a receipt was not printed, or not for certain.
public struct PrintingFailure: Error, Hashable, Sendable {
    public let condition: PrinterCondition
    public let progress: PrintingProgress

    public init(_ condition: PrinterCondition, _ progress: PrintingProgress) {
        (self.condition, self.progress) = (condition, progress)
    }
}

/// What keeps a printer from printing.
public enum PrinterCondition: Error, Hashable, Sendable {
    case paperOut, coverOpen, jam
    /// Somebody else has it.
    case busy
    /// There is none where it should be.
    case absent
    /// It is there, and set not to print.
    case offline
    /// It left while it was in use.
    case disconnected
    /// It takes no more bytes, or does not answer.
    case silent
    case permissionDenied
    /// It takes none of the formats that a receipt can be made in.
    case formatUnsupported
    /// In the words of the printer, or of the program that makes its format.
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

    /// One sentence for a person: what to do next.
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
    /// One line: `the printer is out of paper; 812 of 1204 bytes had gone out`.
    public var description: String {
        progress.mayBePrinted
            ? "\(condition); \(progress.sent) of \(progress.total) bytes had gone out" : "\(condition)"
    }

    /// One sentence for a person: what to do next.
    public var hint: String {
        condition.hint + (progress.mayBePrinted ? " Look whether it has printed before you print again." : "")
    }
}

import ContactlessMetrics
import Foundation

/// The store's labels of the metrics.
extension MetricTable.StoreEvent {
    /// - Returns: nil for an entry about the store or a batch, after which the same payments are stored.
    init?(_ kind: StoreEntry.Kind) {
        switch kind {
        case .stored: self = .stored
        case .withdrawn: self = .withdrawn
        case .setAside: self = .setAside
        case .putBack: self = .putBack
        case .resolved: self = .resolved
        case .released: self = .released
        case .opened, .prepared, .batched, .reset, .sent, .refused, .answered, .checkpoint, .carried: return nil
        }
    }
}

extension MetricTable.StoreState {
    /// The state that the store has for it.
    var state: ProximityReaderSystem.Ledger.State {
        switch self {
        case .stored: .stored
        case .setAside: .setAside
        case .batched: .batched
        case .sent: .sent
        case .approved: .approved
        case .declined: .declined
        case .unknown: .unknown
        }
    }
}

extension MetricTable.StoreFailureReason {
    /// - Returns: nil while another process uses the store, which is no failure.
    init?(_ failure: StoreFailure) {
        switch failure {
        case .busy: return nil
        case .key: self = .key
        case .full: self = .full
        case .notWritable: self = .notWritable
        case .damaged: self = .damaged
        case .newer, .older: self = .version
        case .system: self = .system
        }
    }
}

extension StoreLedger {
    /// Sets the metrics of what is stored.
    func measure() {
        for label in MetricTable.StoreState.all { metrics.storeLevel.set(label, to: Double(count(label.state))) }
        metrics.oldestPayment.set(to: payments.first?.time.timeIntervalSince1970 ?? 0)
    }
}

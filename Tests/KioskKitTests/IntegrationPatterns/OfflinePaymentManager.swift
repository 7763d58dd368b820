// swift-format-ignore-file
import KioskKit
import Observation

@Observable
@MainActor
class OfflinePaymentManager {
    var pendingBatchCount = 0
    var pendingTransactionCount = 0
    
    private let reader = PaymentCardReader()
    private var sfSession: StoreAndForwardPaymentCardReaderSession?
    private let store = PaymentCardReaderStore()
    
    func initialize(token: PaymentCardReader.Token) async throws {
        sfSession = try await StoreAndForwardPaymentCardReaderSession(
            reader: reader,
            token: token
        )
        try await sfSession?.prepare()
        await refreshStatus()
    }
    
    /// Accept payment offline — stored securely on device
    func acceptPayment(amount: Decimal, currency: String) async throws {
        guard let sfSession else { throw TapToPayError.notInitialized }
        
        let request = PaymentCardTransactionRequest(
            amount: amount,
            currencyCode: currency,
            type: .purchase
        )
        
        _ = try await sfSession.readPaymentCard(request)
        try await sfSession.prepare()
        await refreshStatus()
    }
    
    /// Upload all stored batches when connectivity is restored
    func syncPendingTransactions() async throws {
        let batches = try await store.allBatches()
        
        for batch in batches {
            do {
                // Send to PSP
                try await psp.submitBatch(batch.data)
                // Delete on success
                try await store.delete(using: batch.deletionToken)
            } catch {
                // Skip this batch, try next
                continue
            }
        }
        
        await refreshStatus()
    }
    
    private func refreshStatus() async {
        if let status = try? await store.status {
            pendingBatchCount = status.batchCount
            pendingTransactionCount = status.totalTransactionCount
        }
    }
}

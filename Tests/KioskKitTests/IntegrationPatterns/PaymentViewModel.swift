// swift-format-ignore-file
// The guide's `deinit { eventTask?.cancel() }` is left out: no compiler takes it, for @Observable makes of the property what
// only the main actor may touch.
import KioskKit

import ProximityReader
import Observation

@Observable
@MainActor
class PaymentViewModel {
    // MARK: - State
    var amount: Decimal = 0
    var isReady = false
    var isProcessing = false
    var readProgress: Int = 0
    var errorMessage: String?
    var transactionComplete = false
    
    // MARK: - Private
    private let reader = PaymentCardReader()
    private var session: PaymentCardReaderSession?
    private var eventTask: Task<Void, Never>?
    
    // MARK: - Setup
    
    func setup(pspToken: String) async {
        guard PaymentCardReader.isSupported else {
            errorMessage = "Tap to Pay is not supported on this device."
            return
        }
        
        do {
            let token = PaymentCardReader.Token(rawValue: pspToken)
            
            // Link account if needed (first-time setup)
            if try await !reader.isAccountLinked(using: token) {
                try await reader.linkAccount(using: token)
            }
            
            // Create and prepare session
            session = try await PaymentCardReaderSession(reader: reader, token: token)
            try await session?.prepare()
            
            // Observe events
            observeEvents()
            
            isReady = true
        } catch {
            errorMessage = "Setup failed: \(error.localizedDescription)"
        }
    }
    
    // MARK: - Read Payment
    
    func readPayment() async {
        guard let session, amount > 0 else { return }
        
        isProcessing = true
        errorMessage = nil
        
        do {
            let request = PaymentCardTransactionRequest(
                amount: amount,
                currencyCode: "USD",
                type: .purchase
            )
            
            let result = try await session.readPaymentCard(request)
            
            // Send to PSP for processing
            try await processWithPSP(result.paymentCardData)
            
            transactionComplete = true
            
            // Re-prepare for next transaction
            try await session.prepare()
            
        } catch let error as PaymentCardReaderSession.ReadError {
            handleReadError(error)
        } catch let error as PaymentCardReaderError {
            handleReaderError(error)
        } catch {
            errorMessage = "Payment failed: \(error.localizedDescription)"
        }
        
        isProcessing = false
    }
    
    // MARK: - Events
    
    private func observeEvents() {
        eventTask?.cancel()
        eventTask = Task {
            guard let session else { return }
            for await event in session.events {
                switch event {
                case .updateProgress(let progress):
                    readProgress = progress
                case .ready:
                    isReady = true
                case .notReady:
                    isReady = false
                case .readCompleted:
                    readProgress = 100
                case .readCancelled:
                    isProcessing = false
                default:
                    break
                }
            }
        }
    }
    
    // MARK: - Error Handling
    
    private func handleReadError(_ error: PaymentCardReaderSession.ReadError) {
        switch error {
        case .cancelled:
            errorMessage = nil // User cancelled, no error to show
        case .invalidAmount:
            errorMessage = "Invalid payment amount."
        case .notReady:
            errorMessage = "Reader not ready. Please wait."
        default:
            errorMessage = "Read error: \(error)"
        }
    }
    
    private func handleReaderError(_ error: PaymentCardReaderError) {
        switch error {
        case .backgrounded:
            errorMessage = "App was backgrounded. Please try again."
            Task { try? await session?.prepare() }
        case .networkError:
            errorMessage = "Network error. Check your connection."
        case .invalidReaderToken:
            errorMessage = "Session expired. Please restart."
        default:
            errorMessage = "Reader error: \(error)"
        }
    }
    
    private func processWithPSP(_ cardData: String?) async throws {
        // Send cardData to your PSP's backend for processing
        // Implementation depends on your PSP (Stripe, Adyen, Square, etc.)
    }
}

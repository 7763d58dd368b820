import CheckoutTerminal
import ComposableCheckout
import EMVContactless
import Foundation
import KioskKit
import ProximityReader
import SandboxClient
import SmartCardSimulator

/// `kiosk --checkout`: a checkout for each amount, with the reader as one of its methods.
extension Kiosk {
    /// - Returns: true if all payments were made.
    func takeCheckouts() async throws -> Bool {
        try await withService { service, address in
            let texts = InputLocalizable(language: language)
            let terminal = Terminal()
            var arePaid = true
            for text in amounts {
                guard let amount = Currency[currency].flatMap({ Self.amount(text, of: $0) }) else { return false }
                let session = try await HTTPCheckoutRepository.openSession(
                    at: address, amount: amount, currency: currency, patience: .seconds(patience))
                let root = CompositionRoot(
                    configurations: session, methods: session, tokens: session, payments: session,
                    reader: TapToPayReader(service), permitsCardEntry: cardEntry, language: language)
                arePaid = await TerminalFront(try await root.checkout(), texts, terminal).run() && arePaid
            }
            return arePaid
        }
    }
}

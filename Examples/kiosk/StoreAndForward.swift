import EMVContactless
import Foundation
import KioskKit
import ProximityReader
import SandboxClient
import SmartCardSimulator

/// Payments without a network.
extension Kiosk {
    /// - Returns: true if all forwarded payments were approved.
    func storeAndForward() async throws -> Bool {
        // With its own payment service: the files of both are removed once nothing is left to forward.
        let folder =
            hold || forward
            ? ProximityReaderSystem.Configuration().folder.appending(path: "kiosk")
            : FileManager.default.temporaryDirectory.appending(path: "kiosk-\(UUID().uuidString)")
        if service == nil {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        let arguments = [
            "--books", folder.appending(path: "books").path,
            "--card-data-key", folder.appending(path: "card-data.key").path,
        ]
        var sandbox = service == nil ? try await SandboxProcess(arguments) : nil

        let virtual = reader ? nil : SoftwareACR122U()
        var configuration =
            try virtual.map { try Demonstration.configuration(VirtualReader($0)) }
            ?? ProximityReaderSystem.Configuration()
        configuration.storeAndForward = .init(limits: [currency: .init(perPayment: 500, total: 10_000)])
        if service == nil { configuration.folder = folder.appending(path: "store") }
        ProximityReaderSystem.bootstrap(try configuration.validated())
        let reader = PaymentCardReader()

        if offline {
            // The terms, and the key that seals card data, are fetched while the payment service is reachable.
            let psp = try psp(sandbox)
            let manager = try await manager(reader, psp)
            print("Payment service: \(psp.address.absoluteString)")
            try await manager.initialize(token: PaymentCardReader.Token(rawValue: try await psp.fetchReaderToken()))
            if let running = sandbox {
                await running.end()
                print("The payment service is gone.")
            }
            let guide = guide(reader, virtual)
            defer { guide.cancel() }
            for amount in amounts {
                print("\(amount) \(currency)")
                guard let value = Currency[currency].flatMap({ Self.amount(amount, of: $0) }) else { return false }
                let result = try await manager.acceptPayment(amount: value, currency: currency)
                print("  Stored as \(result.id)")
            }
            guard !hold else { return true }
            if sandbox != nil { sandbox = try await SandboxProcess(arguments) }
        }
        let isDone = try await forward(try await manager(reader, try psp(sandbox)))
        await sandbox?.end()
        if isDone.isEmpty, service == nil { try? FileManager.default.removeItem(at: folder) }
        return isDone.areApproved
    }

    private func psp(_ sandbox: SandboxProcess?) throws -> SandboxService {
        guard let address = service.flatMap(URL.init(string:)) ?? sandbox?.address else {
            throw SandboxProcess.Failure(description: "There is no payment service.")
        }
        return SandboxService(address: address, patience: patience)
    }

    @MainActor
    private func manager(_ reader: PaymentCardReader, _ psp: SandboxService) throws -> OfflinePaymentManager {
        // A short interval, for a demonstration.
        var pace = PaymentForwarder.Pace()
        (pace.batchSize, pace.interval, pace.pause) = (batch, .zero, .milliseconds(100))
        pace.longestPause = .seconds(2)
        let forwarder = PaymentForwarder(
            try reader.fetchPaymentCardReaderStore(), to: psp, pace: pace,
            decided: { payment, result in
                let message = result.status == .declined ? result.message.map { ": \($0)" } : nil
                print("  \(payment.amount) \(payment.currency) \(payment.id) \(result.status)\(message ?? "")")
            })
        return try OfflinePaymentManager(reader: reader, forwarder: forwarder)
    }

    /// - Returns: two values: true if all was approved, and true if nothing is left.
    @MainActor
    private func forward(_ manager: OfflinePaymentManager) async throws -> (areApproved: Bool, isEmpty: Bool) {
        try await manager.refreshStatus()
        print("Forwarding: \(manager.pendingTransactionCount)")
        try await manager.syncPendingTransactions()
        let report = manager.lastReport ?? .init()
        print(
            "Approved: \(report.approved), declined: \(report.declined), set aside: \(report.setAside.count), left: \(manager.pendingTransactionCount)"
        )
        for (id, reason) in report.undecided.sorted(by: { $0.key < $1.key }) { print("  \(id) not decided: \(reason)") }
        return (
            report.declined == 0 && manager.pendingTransactionCount == 0, manager.pendingTransactionCount == 0
        )
    }
}

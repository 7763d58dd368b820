import KioskBridge
import ProximityReader
import SandboxClient
import SmartCard
import SmartCardSimulator

/// A customer of the software reader: puts there what the kiosk asks for, and takes it away.
@MainActor final class VirtualCustomer {
    /// The default document and card, and the milliseconds that pass before one is put down.
    nonisolated static let (document, card, pause) = ("passport", "phone-apple", 1000)

    private let device: SoftwareACR122U
    private let document: String
    private let card: String
    /// As long as it takes to see on the page what is asked for.
    private let pause: Duration
    private var presented: (any VirtualCard)?
    private var tasks: [Task<Void, Never>] = []

    /// - Parameters:
    ///   - document: the name of the virtual document.
    ///   - card: the name of the virtual card or phone.
    ///   - pause: the time before something is put on the reader.
    init(_ device: SoftwareACR122U, document: String, card: String, pause: Duration) {
        (self.device, self.document, self.card, self.pause) = (device, document, card, pause)
    }

    func follow(_ host: BridgeHost, _ reader: PaymentCardReader?) {
        let messages = host.messages
        tasks.append(
            Task { [weak self, weak host] in
                for await message in messages where message.payload.action == "nfc.read" {
                    await self?.present(self?.document, until: { host?.isPending(message.correlationId) != true })
                }
            })
        guard let events = reader?.events else { return }
        tasks.append(
            Task { [weak self] in
                for await event in events {
                    switch event {
                    case .readyForTap: await self?.present(self?.card, until: nil)
                    case .removeCard, .readCancelled, .readNotCompleted: self?.remove()
                    default: break
                    }
                }
            })
    }

    /// - Parameter isOver: tells when the card can be taken away; nil: the reader tells it.
    private func present(_ name: String?, until isOver: (() -> Bool)?) async {
        try? await Task.sleep(for: pause)
        guard isOver?() != true, presented == nil, let card = name.flatMap(Demonstration.card) else { return }
        presented = card
        device.insert(card)
        guard let isOver else { return }
        while !isOver() { try? await Task.sleep(for: min(pause, .milliseconds(100)) + .milliseconds(1)) }
        remove()
    }

    private func remove() {
        if let presented { device.remove(presented) }
        presented = nil
    }
}

extension BridgeHost {
    fileprivate func isPending(_ correlationId: String) -> Bool {
        pendingRequests.contains { $0.correlationId == correlationId }
    }
}

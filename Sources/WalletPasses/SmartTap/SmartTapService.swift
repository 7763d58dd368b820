/// A kind of pass in Google's wallet, as a terminal asks for it (Smart Tap 2.1, service type record `str`).
public enum SmartTapService: UInt8, Hashable, Sendable, CaseIterable {
    case all = 0x00
    case allExceptPayment = 0x01
    case payment = 0x02
    case loyalty = 0x03
    case offer = 0x04
    case giftCard = 0x05
    case privateLabelCard = 0x06
    case eventTicket = 0x07
    case flight = 0x08
    case transit = 0x09
    case cloudWallet = 0x10
    case mobileMarketing = 0x11
    case generic = 0x12
    case walletCustomer = 0x40

    /// The name in a configuration: that of the case.
    public var name: String { String(describing: self) }

    init?(named name: some StringProtocol) {
        guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }
}

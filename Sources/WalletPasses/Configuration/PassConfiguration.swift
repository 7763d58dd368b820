public import Foundation

/// The merchants whose passes are read, and what a terminal states about itself: validated when it is created.
public struct PassConfiguration: Sendable {
    /// The greatest number of merchants in one tap, which takes longer with each.
    public static let maximumMerchants = 16

    public let merchants: [PassMerchant]
    /// The terminal's abilities, as Google's wallet is told them; nil: it is not.
    public let capabilities: SmartTapCapabilities?
    /// Apple Wallet's distinction of payment terminals and gates.
    public let terminalType: AppleVAS.TerminalType
    /// The greatest difference of a phone's clock and this machine's, in seconds.
    public let clockTolerance: TimeInterval
    private let requests: [String: PassRequest]

    /// - Throws: ``PassConfigurationError``, which names the fault and its place.
    public init(
        merchants: [PassMerchant], capabilities: SmartTapCapabilities? = .kiosk,
        terminalType: AppleVAS.TerminalType = .payment, clockTolerance: TimeInterval = 300
    ) throws(PassConfigurationError) {
        guard (1...Self.maximumMerchants).contains(merchants.count) else {
            throw PassConfigurationError(.merchantCount(merchants.count), "merchants")
        }
        guard (1...86_400).contains(clockTolerance) else { throw PassConfigurationError(.tolerance, "clockTolerance") }
        var requests: [String: PassRequest] = [:]
        for (index, merchant) in merchants.enumerated() {
            let request = try PassRequest(merchant, at: "merchants[\(index)]")
            guard requests.updateValue(request, forKey: merchant.id) == nil else {
                throw PassConfigurationError(.duplicate, "merchants[\(index)].id")
            }
        }
        (self.merchants, self.capabilities, self.requests) = (merchants, capabilities, requests)
        (self.terminalType, self.clockTolerance) = (terminalType, clockTolerance)
    }

    /// The merchant with this name.
    public func merchant(_ id: String) -> PassMerchant? { requests[id]?.merchant }

    /// A question to a phone for the passes of a merchant.
    ///
    /// - Parameters:
    ///   - id: the merchant's name.
    ///   - signUpURL: a page in place of the configured one.
    ///   - sendsURLOnly: true to offer the page without asking for a pass.
    /// - Throws: ``PassConfigurationError`` for a merchant that is not configured, and a page that no phone takes.
    public func request(
        for id: String, signUpURL: String? = nil, sendsURLOnly: Bool = false
    ) throws(PassConfigurationError) -> PassRequest {
        guard let request = requests[id] else { throw PassConfigurationError(.unknownMerchant, id) }
        guard signUpURL != nil || sendsURLOnly else { return request }
        return try PassRequest(request.merchant, at: id, signUpURL: signUpURL, sendsURLOnly: sendsURLOnly)
    }

    /// The questions for all merchants, in their order.
    public var allRequests: [PassRequest] { merchants.compactMap { requests[$0.id] } }
}

/// A question to a phone for the passes of a merchant, made by ``PassConfiguration/request(for:signUpURL:sendsURLOnly:)``.
public struct PassRequest: Sendable {
    public let merchant: PassMerchant
    /// The question to Apple Wallet; nil: it is not asked.
    let vas: VASMerchant?

    init(
        _ merchant: PassMerchant, at place: String, signUpURL: String? = nil, sendsURLOnly: Bool = false
    ) throws(PassConfigurationError) {
        guard (1...255).contains(merchant.id.utf8.count) else {
            throw PassConfigurationError(.identifier, place + ".id")
        }
        guard merchant.apple != nil || merchant.google != nil else { throw PassConfigurationError(.noWallet, place) }
        self.merchant = merchant
        if let google = merchant.google { try Self.check(google, at: place + ".google") }
        guard let apple = merchant.apple else {
            vas = nil
            return
        }
        do throws(VASMerchant.Fault) {
            vas = try VASMerchant(
                passTypeIdentifier: apple.passTypeIdentifier, signUpURL: signUpURL ?? apple.signUpURL,
                sendsURLOnly: sendsURLOnly)
        } catch {
            let member = error == .signUpURL ? ".signUpURL" : ".passTypeIdentifier"
            throw PassConfigurationError(.apple(error), place + ".apple" + member)
        }
        guard !apple.keys.isEmpty else { throw PassConfigurationError(.noKey, place + ".apple.keys") }
    }

    private static func check(_ google: PassMerchant.Google, at place: String) throws(PassConfigurationError) {
        guard google.collectorID != 0 else { throw PassConfigurationError(.collector, place + ".collectorID") }
        guard !google.keys.isEmpty else { throw PassConfigurationError(.noKey, place + ".keys") }
        guard !google.services.isEmpty else { throw PassConfigurationError(.noService, place + ".services") }
        guard Set(google.services).count == google.services.count else {
            throw PassConfigurationError(.duplicate, place + ".services")
        }
        let texts = [
            ("locationID", google.locationID), ("terminalID", google.terminalID),
            ("merchantName", google.merchantName), ("merchantCategory", google.merchantCategory),
        ]
        for (name, text) in texts {
            guard let text else { continue }
            guard (1...32).contains(text.utf8.count) else { throw PassConfigurationError(.text, "\(place).\(name)") }
        }
        // With the terminal's abilities, whatever the configuration has: their length is the same.
        let session = SmartTapRecords.Session(identifier: [UInt8](repeating: 0, count: 8), sequence: 0)
        let count = SmartTapRequest(google, capabilities: .kiosk, mode: .passOnly)?.service(session).count ?? 0
        guard count <= SmartTapRequest.maximumLength else { throw PassConfigurationError(.tooLong, place) }
    }
}

import WalletPasses

/// A valid request for passes.
struct PassRequest: Sendable {
    typealias ReadError = PaymentCardReaderSession.ReadError

    /// The most merchants of a request: each costs a command while the phone is held to the reader.
    static let greatestCount = 16

    let merchants: [VASMerchant]
    let purpose: PassPart.Purpose

    /// Validates a request.
    ///
    /// - Parameter others: the merchants of a request that names none.
    /// - Throws: `ReadError` of the cases `invalidVASMerchants` and `invalidVASRequestParameters`.
    init(
        _ request: VASRequest, for purpose: PassPart.Purpose, or others: [VASRequest.Merchant]
    ) throws(ReadError) {
        let named = request.vasMerchants.isEmpty ? others : request.vasMerchants
        guard !named.isEmpty else { throw .invalidVASMerchants("there are none") }
        guard named.count <= Self.greatestCount else {
            throw .invalidVASMerchants("there are more than \(Self.greatestCount)")
        }
        guard Set(named.map(\.id)).count == named.count else { throw .invalidVASMerchants("one is named twice") }
        var merchants: [VASMerchant] = []
        for merchant in named {
            do throws(VASMerchant.Fault) {
                merchants.append(
                    try VASMerchant(passTypeIdentifier: merchant.id, signUpURL: merchant.url?.absoluteString))
            } catch {
                switch error {
                case .passTypeIdentifier: throw .invalidVASMerchants("\(error)")
                case .signUpURL: throw .invalidVASRequestParameters("\(error)")
                }
            }
        }
        (self.merchants, self.purpose) = (merchants, purpose)
    }
}

extension VASReadResult.ReadEntry.Status {
    /// - Returns: nil for a status word that Apple's interface does not have.
    init?(_ status: AppleVAS.Status) {
        switch status {
        case .success: self = .success
        case .passNotFound, .noPass: self = .vasDataNotFound
        case .notActivated: self = .vasDataNotActivated
        case .wrongParameters: self = .wrongP1P2
        case .wrongLength: self = .wrongCommandLength
        case .userInterventionRequired: self = .userInterventionRequired
        case .incorrectData: self = .incorrectData
        case .unsupportedVersion: self = .unsupportedApplicationVersion
        case .other: return nil
        }
    }
}

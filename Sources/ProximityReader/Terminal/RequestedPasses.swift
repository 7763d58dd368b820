import Foundation
import WalletPasses

/// A valid request for passes.
struct RequestedPasses: Sendable {
    typealias ReadError = PaymentCardReaderSession.ReadError

    private enum Merchants: Sendable {
        case opened([PassRequest], PassConfiguration)
        case sealed([VASMerchant])
    }

    private let merchants: Merchants
    let purpose: PassPart.Purpose

    /// Validates a request.
    ///
    /// - Parameters:
    ///   - others: the merchants of a request that names none; if there are none either, those of the configuration.
    ///   - configuration: the merchants whose keys this machine has.
    /// - Throws: `ReadError` of the cases `invalidVASMerchants` and `invalidVASRequestParameters`.
    init(
        _ request: VASRequest, for purpose: PassPart.Purpose, or others: [VASRequest.Merchant],
        _ configuration: PassConfiguration?
    ) throws(ReadError) {
        self.purpose = purpose
        let named = request.vasMerchants.isEmpty ? others : request.vasMerchants
        guard !named.isEmpty else {
            guard let configuration else { throw .invalidVASMerchants("there are none") }
            merchants = .opened(configuration.allRequests, configuration)
            return
        }
        guard named.count <= PassConfiguration.maximumMerchants else {
            throw .invalidVASMerchants("there are more than \(PassConfiguration.maximumMerchants)")
        }
        guard Set(named.map(\.id)).count == named.count else { throw .invalidVASMerchants("one is named twice") }
        let known = named.filter { configuration?.merchant($0.id) != nil }
        if let configuration, !known.isEmpty {
            // One conversation with the phone either has all keys, or none.
            guard known.count == named.count else {
                throw .invalidVASMerchants("some are configured with their keys, others are not")
            }
            merchants = .opened(
                try named.map { (merchant) throws(ReadError) in try configuration[merchant] }, configuration)
        } else {
            merchants = .sealed(try named.map { (merchant) throws(ReadError) in try VASMerchant(merchant) })
        }
    }

    /// Begins a conversation with a phone.
    func conversation(_ memory: PassMemory) -> PassConversation {
        switch merchants {
        case .opened(let requests, let configuration):
            .opened(
                PassReading(
                    requests, configuration: configuration, mode: purpose.mode, freshness: memory.freshness,
                    at: memory.now()))
        case .sealed(let merchants): .sealed(AppleVAS(merchants, mode: purpose.mode), [])
        }
    }
}

extension PassPart.Purpose {
    var mode: AppleVAS.Mode {
        switch self {
        case .passes: .passOnly
        case .passesOrPayment: .passOrPayment
        case .passesAndPayment: .passAndPayment
        }
    }
}

extension PassConfiguration {
    fileprivate subscript(merchant: VASRequest.Merchant) -> PassRequest {
        get throws(PaymentCardReaderSession.ReadError) {
            do throws(PassConfigurationError) {
                return try request(for: merchant.id, signUpURL: merchant.url?.absoluteString)
            } catch {
                guard case .apple(.signUpURL) = error.reason else { throw .invalidVASMerchants(error.description) }
                throw .invalidVASRequestParameters(error.description)
            }
        }
    }
}

extension VASMerchant {
    fileprivate init(_ merchant: VASRequest.Merchant) throws(PaymentCardReaderSession.ReadError) {
        do throws(VASMerchant.Fault) {
            try self.init(passTypeIdentifier: merchant.id, signUpURL: merchant.url?.absoluteString)
        } catch {
            switch error {
            case .passTypeIdentifier: throw .invalidVASMerchants(error.description)
            case .signUpURL: throw .invalidVASRequestParameters(error.description)
            }
        }
    }
}

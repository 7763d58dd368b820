/// What a receipt says of an EMV transaction.  Hexadecimal where a data object is binary; empty where there is none.
public struct ReceiptDetails: Codable, Hashable, Sendable {
    /// Tag 9F12 where the terminal can print it, else tag 50.
    public let applicationPreferredName: String
    /// Tag 84, which the application identifier begins: hexadecimal.
    public let dedicatedFileName: String
    /// Tag 8A: two characters.
    public let authorizationResponseCode: String
    /// Tag 9F26: hexadecimal, 8 bytes.
    public let applicationCryptogram: String
    /// Tag 95: hexadecimal, 5 bytes.
    public let terminalVerificationResults: String
    /// Tag 9B: hexadecimal, 2 bytes.
    public let transactionStatusInformation: String
    /// Tag 5F57, as the payment service puts it.
    public let accountType: String?
    public let cardholderVerificationMethod: CardholderVerificationMethod?
    /// The issuer's, tag 89.
    public let authorizationCode: String?

    public init(
        applicationPreferredName: String, dedicatedFileName: String, authorizationResponseCode: String = "",
        applicationCryptogram: String = "", terminalVerificationResults: String = "",
        transactionStatusInformation: String = "", accountType: String? = nil,
        cardholderVerificationMethod: CardholderVerificationMethod? = nil, authorizationCode: String? = nil
    ) {
        self.applicationPreferredName = applicationPreferredName
        self.dedicatedFileName = dedicatedFileName
        self.authorizationResponseCode = authorizationResponseCode
        self.applicationCryptogram = applicationCryptogram
        self.terminalVerificationResults = terminalVerificationResults
        self.transactionStatusInformation = transactionStatusInformation
        self.accountType = accountType
        self.cardholderVerificationMethod = cardholderVerificationMethod
        self.authorizationCode = authorizationCode
    }

    private enum CodingKeys: String, CodingKey {
        case applicationPreferredName = "application_preferred_name"
        case dedicatedFileName = "dedicated_file_name"
        case authorizationResponseCode = "authorization_response_code"
        case applicationCryptogram = "application_cryptogram"
        case terminalVerificationResults = "terminal_verification_results"
        case transactionStatusInformation = "transaction_status_information"
        case accountType = "account_type"
        case cardholderVerificationMethod = "cardholder_verification_method"
        case authorizationCode = "authorization_code"
    }
}

/// How the cardholder was verified.
public enum CardholderVerificationMethod: String, Codable, CaseIterable, Hashable, Sendable {
    case noCVM = "none"
    case signature
    case onlinePIN = "online_pin"
    case offlinePIN = "offline_pin"
    case offlinePINAndSignature = "offline_pin_and_signature"
    /// On the cardholder's own device: a code, a finger, a face.
    case confirmationCode = "confirmation_code"
    case failed

    /// Reads CVM Results, tag 9F34 (EMV Book 4, A4; codes as Book 3, C3).
    ///
    /// - Returns: nil for what is not three bytes, and for methods of the issuer's own.
    public init?(cvmResults: some Collection<UInt8>) {
        let bytes = Array(cvmResults)
        guard bytes.count == 3 else { return nil }
        guard bytes[2] != 0x01 else {
            self = .failed
            return
        }
        switch bytes[0] & 0x3F {
        case 0x00: self = .failed
        case 0x01, 0x04: self = .offlinePIN
        case 0x02: self = .onlinePIN
        case 0x03, 0x05: self = .offlinePINAndSignature
        case 0x1E: self = .signature
        case 0x1F, 0x3F: self = .noCVM
        default: return nil
        }
    }
}

/// Data objects by the kind of secret that they hold (EMV Book 3, Annex A; EMV Contactless Book C-2, Annex A;
/// ISO/IEC 7816-6).
extension SensitiveData {
    /// Names of people: Cardholder Name, Cardholder Name Extended, Name of an individual.
    package static let names: Set<TLVTag> = [0x5F20, 0x9F0B, 0x5B]
    /// Date of birth, portrait, address, image of the signature (ISO/IEC 7816-6).
    package static let persons: Set<TLVTag> = [0x5F2B, 0x5F40, 0x5F42, 0x5F43]
    /// Tracks, and the discretionary data of tracks.
    package static let tracks: Set<TLVTag> = [
        0x56, 0x57, 0x9F6B, 0x9F1F, 0x9F20, 0x58, 0x5F21, 0x5F22, 0x5F23, 0xDF812A, 0xDF812B,
    ]
    /// References to an account: IBAN, Payment Account Reference, and the last four digits of the number behind a token
    /// (EMV Payment Tokenisation).
    package static let accountReferences: Set<TLVTag> = [0x5F53, 0x9F24, 0x9F25]
    /// Objects of packed digits, even if these resemble text: tracks, and the last four digits of a number.
    package static let packedDigits: Set<TLVTag> = [0x9F20, 0x58, 0x5F22, 0x5F23, 0xDF812B, 0x9F25]
    /// Cardholder private key, and the template of its parts (ISO/IEC 7816-6; ISO/IEC 7816-8).
    package static let keys: Set<TLVTag> = [0x5F48, 0x7F48]
    /// Objects that reveal the account number: certificates, and the signature over static data.  With the issuer's
    /// public key, every number with the same beginning can be tried against the hash.
    package static let certificates: Set<TLVTag> = [0x9F46, 0x9F2D, 0x93]
    /// Application Cryptogram, Issuer Application Data, signature, CVC3 of tracks 1 and 2, Issuer Authentication Data.
    package static let cryptograms: Set<TLVTag> = [0x9F26, 0x9F10, 0x9F4B, 0x9F60, 0x9F61, 0x91]
}

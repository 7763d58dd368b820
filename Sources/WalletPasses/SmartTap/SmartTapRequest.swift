import CardEncryption
public import Crypto
import SmartCard

/// A collector's question to Google's wallet, and the signature that entitles it.
public struct SmartTapRequest: Sendable {
    /// Signs with the collector's key, whose version is ``keyVersion``: ECDSA on P-256 with SHA-256, in DER.
    public typealias Signer = @Sendable (_ data: [UInt8]) throws -> [UInt8]

    public let collectorID: UInt32
    /// The version of the key that is registered with Google.
    public let keyVersion: UInt32
    let sign: Signer
    private let merchant: PassMerchant.Google
    private let capabilities: SmartTapCapabilities?
    private let mode: AppleVAS.Mode

    /// Creates a request that is signed with the newest key of the collector.
    ///
    /// - Returns: nil for a collector without a key.
    public init?(_ merchant: PassMerchant.Google, capabilities: SmartTapCapabilities?, mode: AppleVAS.Mode) {
        guard let (version, key) = merchant.newestKey else { return nil }
        self.init(merchant, keyVersion: version, capabilities: capabilities, mode: mode) { data in
            Array(try key.signing.signature(for: data).derRepresentation)
        }
    }

    /// Creates a request that is signed elsewhere, such as by a security module.
    public init(
        _ merchant: PassMerchant.Google, keyVersion: UInt32, capabilities: SmartTapCapabilities?, mode: AppleVAS.Mode,
        signer: @escaping Signer
    ) {
        (collectorID, self.keyVersion, sign) = (merchant.collectorID, keyVersion, signer)
        (self.merchant, self.capabilities, self.mode) = (merchant, capabilities, mode)
    }

    /// The most bytes of a command's data: an ACR122U passes 251 bytes of APDU to its PN532.
    static let maximumLength = 245

    /// `cld`, in `ngr` and `mer`.
    private var collector: NDEFRecord {
        SmartTapRecords.record("cld", [SmartTapRecords.Format.binary.rawValue] + collectorID.bigEndianBytes)
    }

    /// `ngr`: session, and `cpr` with nonce, live authentication, ephemeral key, key version, signature and collector.
    func negotiation(
        _ session: SmartTapRecords.Session, readerNonce: [UInt8], readerKey: [UInt8], signature: [UInt8]
    ) -> [UInt8] {
        let signed = SmartTapRecords.record("sig", [SmartTapRecords.Format.binary.rawValue] + signature)
        let parameters = SmartTapRecords.record(
            "cpr", prefix: readerNonce + [0x01] + readerKey + keyVersion.bigEndianBytes, [signed, collector])
        let request = SmartTapRecords.record(
            "ngr", prefix: SmartTapRecords.version, [session.record, parameters])
        return NDEFMessage([request]).bytes
    }

    /// `srq`: session, `mer`, `slr` and `pcr`.
    func service(_ session: SmartTapRecords.Session) -> [UInt8] {
        var about = [collector]
        // Primitive values state their format; the name is a text (Google's APDU reference, get smart tap data).
        for (name, text) in [("lid", merchant.locationID), ("tid", merchant.terminalID)] {
            if let text { about.append(Self.primitive(name, text)) }
        }
        if let name = merchant.merchantName {
            about.append(
                NDEFRecord(
                    unchecked: .wellKnown, Array("T".utf8), Array("mnr".utf8), [0x00] + Array(name.utf8)))
        }
        if let category = merchant.merchantCategory { about.append(Self.primitive("mcr", category)) }
        var parts = [
            session.record, SmartTapRecords.record("mer", about),
            // One record for each kind of pass.
            SmartTapRecords.record("slr", merchant.services.map { SmartTapRecords.record("str", [$0.rawValue]) }),
        ]
        if let capabilities { parts.append(SmartTapRecords.record("pcr", capabilities.bytes(for: mode))) }
        return NDEFMessage([SmartTapRecords.record("srq", prefix: SmartTapRecords.version, parts)]).bytes
    }

    private static func primitive(_ name: String, _ text: String) -> NDEFRecord {
        let format: SmartTapRecords.Format = text.utf8.allSatisfy { $0 < 0x80 } ? .ascii : .utf8
        return SmartTapRecords.record(name, [format.rawValue] + Array(text.utf8))
    }
}

/// The random choices of a terminal for one conversation of Smart Tap.
public struct SmartTapSecrets: Sendable {
    let sessionID: [UInt8]
    let readerNonce: [UInt8]
    let ephemeralKey: P256.KeyAgreement.PrivateKey

    /// Chooses them with the system's random numbers.
    public init() {
        var generator = SystemRandomNumberGenerator()
        sessionID = (0..<8).map { _ in generator.next() }
        readerNonce = (0..<32).map { _ in generator.next() }
        ephemeralKey = P256.KeyAgreement.PrivateKey()
    }

    /// Takes given ones, for tests.
    ///
    /// - Parameters:
    ///   - sessionID: 8 bytes.
    ///   - readerNonce: 32 bytes.
    ///   - ephemeralKey: of this conversation alone.
    /// - Returns: nil for other lengths.
    public init?(sessionID: [UInt8], readerNonce: [UInt8], ephemeralKey: P256.KeyAgreement.PrivateKey) {
        guard sessionID.count == 8, readerNonce.count == 32 else { return nil }
        (self.sessionID, self.readerNonce, self.ephemeralKey) = (sessionID, readerNonce, ephemeralKey)
    }

    var publicKey: [UInt8] { Array(ephemeralKey.publicKey.compressedRepresentation) }
}

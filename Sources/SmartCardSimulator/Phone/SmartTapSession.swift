import SmartCard

/// The secure channel of a Smart Tap session, on the phone's side.
struct SmartTapSession: Sendable {
    /// The record `ses`: eight bytes of a number, a sequence number, and a status.
    struct Header: Sendable {
        enum Status: UInt8 {
            case good = 0x01
            case wrongSequence = 0x04
            case unknownMerchant = 0x05
            case merchantMissing = 0x06
            case servicesMissing = 0x07
        }

        let identifier: [UInt8]
        let sequence: UInt8

        init?(_ payload: [UInt8]) {
            guard payload.count == 10 else { return nil }
            (identifier, sequence) = (Array(payload.prefix(8)), payload[8])
        }
    }

    /// The proof of a terminal's identity.
    struct Proof {
        let nonce: [UInt8]
        /// The signature is over the phone's nonce, not over zeros.
        let isLive: Bool
        /// The terminal's ephemeral key, compressed.
        let key: [UInt8]
        /// DER.
        let signature: [UInt8]
    }

    let nonce: [UInt8]
    /// Compressed.
    let publicKey: [UInt8]
    private let privateKey: [UInt8]
    /// The collector that has proved itself.
    private(set) var collector: [UInt8]?
    private var keys: (aes: [UInt8], hmac: [UInt8]) = ([], [])
    private var lastSequence: UInt8?

    /// - Returns: nil if libcrypto refuses.
    init?(nonce: [UInt8]?, ephemeralKey: [UInt8]?) {
        guard let curve = ChipCurve(12), let pair = curve.keyPair(ephemeralKey) else { return nil }
        self.nonce = nonce ?? (0..<32).map { _ in UInt8.random(in: 0...255) }
        (privateKey, publicKey) = (pair.privateKey, curve.compressed(pair.publicKey))
    }

    /// Checks the signature and derives the keys of the session: HKDF-SHA256 with the phone's key as salt and all that was
    /// signed, with the signature, as information.
    mutating func establish(with proof: Proof, of collector: [UInt8], _ key: [UInt8]) -> Bool {
        let signed = proof.nonce + (proof.isLive ? nonce : [UInt8](repeating: 0, count: 32)) + collector + proof.key
        guard let curve = ChipCurve(12), curve.verifies(proof.signature, over: signed, by: key),
            let point = curve.expanded(proof.key), let shared = curve.agree(point, privateKey),
            let derived = Self.derive(curve.secret(of: shared), salt: publicKey, information: signed + proof.signature)
        else { return false }
        keys = (Array(derived.prefix(16)), Array(derived.dropFirst(16)))
        self.collector = collector
        return true
    }

    /// The initialization vector, AES-CTR with four more bytes of zeros for the counter, and HMAC-SHA256 over both.
    func seal(_ clear: [UInt8], iv: [UInt8]?) -> [UInt8]? {
        let iv = iv ?? (0..<12).map { _ in UInt8.random(in: 0...255) }
        guard let cipher = AES(keys.aes)?.ctr(clear, counter: iv + [0, 0, 0, 0]),
            let checksum = Self.hmac(keys.hmac, iv + cipher)
        else { return nil }
        return iv + cipher + checksum
    }

    // MARK: Sequence numbers

    /// The answer to a number that is lower than one before; nil for any other.
    func answer(toStale header: Header) -> SmartTapRecord? {
        guard let lastSequence, header.sequence < lastSequence else { return nil }
        return Self.record(header, .wrongSequence)
    }

    mutating func answer(to header: Header, _ status: Header.Status = .good) -> SmartTapRecord {
        lastSequence = header.sequence
        return Self.record(header, status)
    }

    private static func record(_ header: Header, _ status: Header.Status) -> SmartTapRecord {
        SmartTapRecord("ses", header.identifier + [header.sequence &+ 1, status.rawValue])
    }

    // MARK: Derivation

    /// RFC 5869: 48 bytes.
    private static func derive(_ secret: [UInt8], salt: [UInt8], information: [UInt8]) -> [UInt8]? {
        guard let key = hmac(salt, secret), let first = hmac(key, information + [0x01]),
            let second = hmac(key, first + information + [0x02])
        else { return nil }
        return first + second.prefix(16)
    }

    /// RFC 2104, with SHA-256 and a key of up to 64 bytes.
    private static func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8]? {
        let key = key + [UInt8](repeating: 0, count: max(64 - key.count, 0))
        return RSAKey.sha256(key.map { $0 ^ 0x36 } + message).flatMap { RSAKey.sha256(key.map { $0 ^ 0x5C } + $0) }
    }
}

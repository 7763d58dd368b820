import SmartCard

/// Basic Access Control (ICAO 9303-11, 4.3): both sides prove that they know the machine readable zone, and agree on keys
/// for secure messaging with triple DES.
struct BasicAccessControl: AccessProtocol {
    private enum State {
        case new
        case waitingForChallenge
        case authenticating(challenge: [UInt8])
        case over
    }

    private let encryptionKey: [UInt8]
    private let authenticationKey: [UInt8]
    /// RND.IFD, 8 bytes.
    private let challenge: [UInt8]
    /// K.IFD, 16 bytes.
    private let keyHalf: [UInt8]
    private var state = State.new

    private static let cipher = SessionCipher.tripleDES

    /// - Returns: nil for a key that is not of a machine readable zone.
    init?(_ key: AccessKey, random: inout some RandomSource) {
        guard key.kind == .machineReadableZone else { return nil }
        let seed = Array(key.secret.prefix(16))
        encryptionKey = Self.cipher.deriveKey(seed, for: .encryption)
        authenticationKey = Self.cipher.deriveKey(seed, for: .authentication)
        challenge = random.bytes(8)
        keyHalf = random.bytes(16)
    }

    mutating func next(_ response: ResponseAPDU?) -> AccessStep {
        switch (state, response) {
        case (.new, nil):
            state = .waitingForChallenge
            return .send(.getChallenge)
        case (.waitingForChallenge, let response?):
            guard response.status == .success else { return refuse(.status(response.status)) }
            guard response.data.count == 8 else { return refuse(.malformedAnswer) }
            state = .authenticating(challenge: response.data)
            return authenticate(response.data)
        case (.authenticating(let challenge), let response?):
            return finish(response, challenge)
        default:
            return refuse(.malformedAnswer)
        }
    }

    private mutating func refuse(_ reason: AccessRefusal) -> AccessStep {
        state = .over
        return .refused(reason)
    }

    private mutating func authenticate(_ challengeOfChip: [UInt8]) -> AccessStep {
        guard
            let cryptogram = Self.cipher.cbc(
                challenge + challengeOfChip + keyHalf, key: encryptionKey, encrypting: true),
            let mac = Self.cipher.mac(Self.cipher.padded(cryptogram), key: authenticationKey)
        else { return refuse(.malformedAnswer) }
        return .send(.externalAuthenticate(cryptogram + mac, ne: 40))
    }

    private mutating func finish(_ response: ResponseAPDU, _ challengeOfChip: [UInt8]) -> AccessStep {
        switch response.status {
        case .success: break
        case .counter: return refuse(.wrongKey(triesLeft: Int(response.status.sw2 & 0x0F)))
        // Chips differ in how they say it.
        case .warningChanged, 0x6982, 0x6985, 0x6988: return refuse(.wrongKey(triesLeft: nil))
        default: return refuse(.status(response.status))
        }
        guard response.data.count == 40 else { return refuse(.malformedAnswer) }
        let (cryptogram, mac) = (Array(response.data.prefix(32)), Array(response.data.suffix(8)))
        guard Self.cipher.mac(Self.cipher.padded(cryptogram), key: authenticationKey) == mac,
            let clear = Self.cipher.cbc(cryptogram, key: encryptionKey, encrypting: false),
            Array(clear[0..<8]) == challengeOfChip, Array(clear[8..<16]) == challenge
        else { return refuse(.chipNotAuthenticated) }
        state = .over
        let seed = zip(keyHalf, clear[16...]).map { $0 ^ $1 }
        return .established(
            SecureMessaging(
                Self.cipher, secret: seed, counter: Array(challengeOfChip.suffix(4) + challenge.suffix(4))))
    }
}

extension CommandAPDU {
    /// GET CHALLENGE for 8 bytes (ISO/IEC 7816-4, 11.5.3).
    fileprivate static let getChallenge = CommandAPDU(unchecked: (0x00, 0x84, 0x00, 0x00), ne: 8)

    /// EXTERNAL AUTHENTICATE with mutual authentication (ISO/IEC 7816-4, 11.5.4).
    fileprivate static func externalAuthenticate(_ data: [UInt8], ne: Int) -> CommandAPDU {
        CommandAPDU(unchecked: (0x00, 0x82, 0x00, 0x00), data: data, ne: ne)
    }
}

import SmartCard

/// Password Authenticated Connection Establishment (ICAO 9303-11, 4.4): both sides prove that they know the password and
/// agree on keys, of which whoever listens learns nothing.
struct PACE: AccessProtocol {
    private enum State {
        case new
        case selecting(namesParameters: Bool)
        case waitingForNonce
        case mapping(nonce: [UInt8], MappingSent)
        case agreeing(any KeyAgreement, KeyPair)
        case authenticating(Keys, expected: [UInt8])
        case over
    }

    /// The reader's contribution to the mapping.
    private enum MappingSent {
        case publicKey(KeyPair)
        case nonce([UInt8])
    }

    private struct Keys {
        let secret: [UInt8]
        let encryption: [UInt8]
        let authentication: [UInt8]
    }

    private let info: PACEInfo
    private let kind: AccessKey.Kind
    /// K_π, which decrypts the nonce.
    private let passwordKey: [UInt8]
    private let group: any KeyAgreement
    private var random: any RandomSource
    private var namesParameters: Bool
    private var state = State.new
    /// True if the last secret began with a zero.
    private var isSecretShort = false
    private var tries = 1
    /// The chip's public key of the mapping.
    private var chipMappingKey: [UInt8] = []
    /// The chip's proof that it has the private key of EF.CardSecurity, after success with chip authentication mapping.
    private(set) var chipAuthentication: ChipAuthenticationMapping?

    /// - Parameters:
    ///   - info: what the chip offers.
    ///   - namesParameters: true if the chip offers several domain parameters with the same identifier.
    /// - Returns: nil if the domain parameters are the chip's own or unknown.
    init?(_ info: PACEInfo, _ key: AccessKey, namesParameters: Bool = false, random: any RandomSource) {
        self.init(
            info, key.kind, passwordKey: info.cipher.deriveKey(key.secret, for: .password),
            namesParameters: namesParameters, random: random)
    }

    /// Creates the protocol from the key that is derived from a password.
    init?(
        _ info: PACEInfo, _ kind: AccessKey.Kind, passwordKey: [UInt8], namesParameters: Bool = false,
        random: any RandomSource
    ) {
        guard let group = info.group else { return nil }
        (self.info, self.kind, self.passwordKey, self.group, self.random) = (info, kind, passwordKey, group, random)
        self.namesParameters = namesParameters
    }

    mutating func next(_ response: ResponseAPDU?) -> AccessStep {
        switch (state, response) {
        case (.new, nil): return select(namesParameters: namesParameters)
        case (.selecting(let names), let response?): return wasSelected(response, names)
        case (.waitingForNonce, let response?): return withObject(0x80, of: response) { $0.map($1) }
        case (.mapping(let nonce, let sent), let response?):
            // With integrated mapping the chip has nothing to say.
            return withObject(info.variant.isIntegrated ? nil : 0x82, of: response) { $0.agree(nonce, sent, $1) }
        case (.agreeing(let group, let pair), let response?):
            return withObject(0x84, of: response) { $0.authenticate(group, pair, $1) }
        case (.authenticating(let keys, let expected), let response?): return finish(response, keys, expected)
        default: return refuse(.malformedAnswer)
        }
    }

    /// Some chips drop the leading zeros of a secret in a modular group, as OpenPACE does, and then refuse the token that is
    /// made with all of it (9.4): one time in 256.
    mutating func startAgain() -> AccessStep? {
        guard isSecretShort, tries < Self.mostTries else { return nil }
        tries += 1
        isSecretShort = false
        state = .new
        return next(nil)
    }

    private static let mostTries = 3

    private mutating func refuse(_ reason: AccessRefusal) -> AccessStep {
        state = .over
        // A number that is blocked is, whichever command says so (ISO/IEC 7816-4, 5.6).
        return .refused(reason == .status(0x6983) ? .wrongKey(triesLeft: 0) : reason)
    }

    /// Calls `body` with an object of the template 7C of a successful response; with all of it for no tag.
    private mutating func withObject(
        _ tag: TLVTag?, of response: ResponseAPDU, _ body: (inout PACE, [UInt8]) -> AccessStep
    ) -> AccessStep {
        guard response.status == .success else { return refuse(.status(response.status)) }
        guard let tag else { return body(&self, []) }
        guard let value = Self.template(response)?[tag]?.value else { return refuse(.malformedAnswer) }
        return body(&self, Array(value))
    }

    private static func template(_ response: ResponseAPDU) -> TLVList? {
        guard let list = try? TLVList(response.data, padding: []), list.count == 1, list.first?.tag == 0x7C else {
            return nil
        }
        return list.first?.children
    }

    // MARK: Steps

    /// MSE:Set AT (4.4.4.1).
    private mutating func select(namesParameters: Bool) -> AccessStep {
        state = .selecting(namesParameters: namesParameters)
        var data = TLVTag(0x80).encode(info.identifier) + TLVTag(0x83).encode([kind.rawValue])
        if namesParameters, let number = info.domainParameters {
            data += TLVTag(0x84).encode([UInt8(truncatingIfNeeded: number)])
        }
        return .send(.setAuthenticationTemplate(data))
    }

    private mutating func wasSelected(_ response: ResponseAPDU, _ namesParameters: Bool) -> AccessStep {
        switch response.status {
        // A counter tells how many tries are left; the password may still be tried.
        case 0x63C0: return refuse(.wrongKey(triesLeft: 0))
        case .success, .counter:
            state = .waitingForNonce
            return .send(.generalAuthenticate(objects: []))
        // Some chips insist on the number of the domain parameters.
        case 0x6A80 where !namesParameters, 0x6A88 where !namesParameters: return select(namesParameters: true)
        default: return refuse(.status(response.status))
        }
    }

    /// 4.4.3.3, with the decrypted nonce of the chip.
    private mutating func map(_ encrypted: [UInt8]) -> AccessStep {
        // Whole blocks (4.4.3.2); OpenPACE has one of 8 bytes with triple DES.
        guard (8...32).contains(encrypted.count),
            let nonce = info.cipher.cbc(encrypted, key: passwordKey, encrypting: false)
        else { return refuse(.malformedAnswer) }
        if info.variant.isIntegrated {
            let ours = random.bytes(info.cipher.keyLength)
            state = .mapping(nonce: nonce, .nonce(ours))
            return .send(.generalAuthenticate(objects: TLVTag(0x81).encode(ours)))
        }
        guard let pair = group.makeKeyPair(&random) else { return refuse(.unsupported) }
        state = .mapping(nonce: nonce, .publicKey(pair))
        return .send(.generalAuthenticate(objects: TLVTag(0x81).encode(pair.publicKey)))
    }

    /// 4.4.3.4: a key pair with the mapped generator.
    private mutating func agree(_ nonce: [UInt8], _ sent: MappingSent, _ chipKey: [UInt8]) -> AccessStep {
        chipMappingKey = chipKey
        guard let mapped = mapped(nonce, sent, chipKey) else { return refuse(.malformedAnswer) }
        guard let pair = mapped.makeKeyPair(&random) else { return refuse(.unsupported) }
        state = .agreeing(mapped, pair)
        return .send(.generalAuthenticate(objects: TLVTag(0x83).encode(pair.publicKey)))
    }

    private func mapped(_ nonce: [UInt8], _ sent: MappingSent, _ chipKey: [UInt8]) -> (any KeyAgreement)? {
        switch sent {
        case .publicKey(let pair):
            // The chip's key must not be ours.
            guard chipKey != pair.publicKey, let shared = group.agree(pair.privateKey, chipKey) else { return nil }
            return group.mapped(nonce, with: shared)
        case .nonce(let ours):
            return pseudorandom(nonce, ours).flatMap { group.mapped($0) }
        }
    }

    /// Mutual authentication (4.4.3.5): each side's token is over the other side's public key.
    private mutating func authenticate(
        _ group: any KeyAgreement, _ pair: KeyPair, _ chipKey: [UInt8]
    ) -> AccessStep {
        guard chipKey != pair.publicKey, let shared = group.agree(pair.privateKey, chipKey) else {
            return refuse(.malformedAnswer)
        }
        let secret = group.secret(of: shared)
        isSecretShort = group is ModularGroup && secret.first == 0
        let keys = Keys(
            secret: secret, encryption: info.cipher.deriveKey(secret, for: .encryption),
            authentication: info.cipher.deriveKey(secret, for: .authentication))
        let tag = TLVTag(rawValue: type(of: group).publicKeyTag)
        guard let ours = token(keys, tag.encode(chipKey)), let theirs = token(keys, tag.encode(pair.publicKey)) else {
            return refuse(.malformedAnswer)
        }
        state = .authenticating(keys, expected: theirs)
        return .send(.generalAuthenticate(objects: TLVTag(0x85).encode(ours), isLast: true))
    }

    /// 9.4 and 4.4.3.5.
    private func token(_ keys: Keys, _ publicKey: [UInt8]) -> [UInt8]? {
        let data = TLVTag(0x7F49).encode(objects: TLVTag(0x06).encode(info.identifier), publicKey)
        return info.cipher.mac(
            info.cipher == .tripleDES ? info.cipher.padded(data) : data, key: keys.authentication)
    }

    private mutating func finish(_ response: ResponseAPDU, _ keys: Keys, _ expected: [UInt8]) -> AccessStep {
        switch response.status {
        case .success: break
        case .counter: return refuse(.wrongKey(triesLeft: Int(response.status.sw2 & 0x0F)))
        case .warningChanged, 0x6982, 0x6988: return refuse(.wrongKey(triesLeft: nil))
        default: return refuse(.status(response.status))
        }
        guard let template = Self.template(response), let token = template[0x86]?.value else {
            return refuse(.malformedAnswer)
        }
        guard token.elementsEqual(expected) else { return refuse(.chipNotAuthenticated) }
        if info.variant == .ecdhChipAuthenticationMapping {
            guard
                let proof = ChipAuthenticationMapping(
                    encrypted: template[0x8A].map { Array($0.value) } ?? [], info, encryptionKey: keys.encryption,
                    mappingKey: chipMappingKey)
            else { return refuse(.malformedAnswer) }
            chipAuthentication = proof
        }
        state = .over
        return .established(SecureMessaging(info.cipher, secret: keys.secret))
    }
}

// MARK: - Integrated mapping

extension PACE {
    /// Stretches both nonces to pseudo-random bytes, 64 bits longer than the prime (4.4.3.3.3.2).
    ///
    /// - Parameters:
    ///   - nonce: the chip's, s.
    ///   - ours: the reader's, t.
    private func pseudorandom(_ nonce: [UInt8], _ ours: [UInt8]) -> [UInt8]? {
        let cipher = info.cipher
        let isLong = cipher == .aes192 || cipher == .aes256
        let constants = isLong ? Self.longConstants : Self.shortConstants
        let blockBits = isLong ? 256 : 128
        guard nonce.count * 8 == blockBits, var key = cipher.cbc(nonce, key: ours, encrypting: true) else { return nil }
        var bytes: [UInt8] = []
        while bytes.count * 8 < group.primeBits + 64 {
            key = Array(key.prefix(cipher.keyLength))
            guard let block = cipher.cbc(constants.1, key: key, encrypting: true),
                let next = cipher.cbc(constants.0, key: key, encrypting: true)
            else { return nil }
            bytes += block
            key = next
        }
        return bytes
    }

    private static let shortConstants = (
        [0xA6, 0x68, 0x89, 0x2A, 0x7C, 0x41, 0xE3, 0xCA, 0x73, 0x9F, 0x40, 0xB0, 0x57, 0xD8, 0x59, 0x04] as [UInt8],
        [0xA4, 0xE1, 0x36, 0xAC, 0x72, 0x5F, 0x73, 0x8B, 0x01, 0xC1, 0xF6, 0x02, 0x17, 0xC1, 0x88, 0xAD] as [UInt8]
    )
    private static let longConstants = (
        [
            0xD4, 0x63, 0xD6, 0x52, 0x34, 0x12, 0x4E, 0xF7, 0x89, 0x70, 0x54, 0x98, 0x6D, 0xCA, 0x0A, 0x17,
            0x4E, 0x28, 0xDF, 0x75, 0x8C, 0xBA, 0xA0, 0x3F, 0x24, 0x06, 0x16, 0x41, 0x4D, 0x5A, 0x16, 0x76,
        ] as [UInt8],
        [
            0x54, 0xBD, 0x72, 0x55, 0xF0, 0xAA, 0xF8, 0x31, 0xBE, 0xC3, 0x42, 0x3F, 0xCF, 0x39, 0xD6, 0x9B,
            0x6C, 0xBF, 0x06, 0x66, 0x77, 0xD0, 0xFA, 0xAE, 0x5A, 0xAD, 0xD9, 0x9D, 0xF8, 0xE5, 0x35, 0x17,
        ] as [UInt8]
    )
}

extension CommandAPDU {
    /// MSE:Set AT for mutual authentication, without Le, on which some chips refuse it (ICAO 9303-11, 4.4.4.1).
    fileprivate static func setAuthenticationTemplate(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x00, 0x22, 0xC1, 0xA4), data: data)
    }

    /// GENERAL AUTHENTICATE, chained unless it is the last (ICAO 9303-11, 4.4.4.2).
    fileprivate static func generalAuthenticate(objects: [UInt8], isLast: Bool = false) -> CommandAPDU {
        let data = TLVTag(0x7C).encode(objects)
        return CommandAPDU(
            unchecked: (isLast ? 0x00 : 0x10, 0x86, 0x00, 0x00), data: data, ne: data.count > 255 ? 65_536 : 256,
            lengthCoding: data.count > 255 ? .extended : .short)
    }
}

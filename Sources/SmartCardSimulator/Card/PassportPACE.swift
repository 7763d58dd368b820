import SmartCard

extension PassportCard {
    /// A number that opens the chip, by its reference in PACE (ICAO 9303-11, 4.4.4.1, data object 83;
    /// PIN and PUK are those of BSI TR-03110).
    enum Number: UInt8, Sendable {
        case cardAccessNumber = 2
        case pin = 3
        case puk = 4
    }
}

/// The chip's side of PACE (ICAO 9303-11, 4.4), from MSE:Set AT to the session's secret.
struct PassportPACE: Sendable {
    /// The ways to agree on a generator (4.4.3.3), by their names in a card file.
    enum Mapping: String, CaseIterable, Hashable, Sendable {
        case dhGeneric = "dh-gm"
        case ecdhGeneric = "ecdh-gm"
        case dhIntegrated = "dh-im"
        case ecdhIntegrated = "ecdh-im"
        case chipAuthentication = "ecdh-cam"

        /// The last but one byte of the object identifiers of PACE (9.2.1).
        var number: UInt8 {
            switch self {
            case .dhGeneric: 1
            case .ecdhGeneric: 2
            case .dhIntegrated: 3
            case .ecdhIntegrated: 4
            case .chipAuthentication: 6
            }
        }

        var isIntegrated: Bool { self == .dhIntegrated || self == .ecdhIntegrated }
        /// The numbers of the domain parameters that it takes (9.5.1, table 6).
        var parameters: ClosedRange<UInt64> { self == .dhGeneric || self == .dhIntegrated ? 0...2 : 8...18 }
    }

    /// A variant of PACE, as EF.CardAccess offers it.
    struct Offer: Hashable, Sendable {
        let mapping: Mapping
        let cipher: PassportCipher
        /// The number of the standardized domain parameters (9.5.1, table 6).
        let parameters: UInt64

        /// - Returns: nil for what ICAO 9303-11 does not have: domain parameters of the other kind, integrated mapping on
        ///   P-224, and chip authentication mapping with triple DES.
        init?(_ mapping: Mapping, _ cipher: PassportCipher, parameters: UInt64) {
            guard mapping.parameters.contains(parameters), mapping != .ecdhIntegrated || parameters != 10,
                mapping != .chipAuthentication || cipher != .tripleDES
            else { return nil }
            (self.mapping, self.cipher, self.parameters) = (mapping, cipher, parameters)
        }

        /// id-PACE with the mapping and the cipher (9.2.1).
        var identifier: [UInt8] { [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x04, mapping.number, cipher.number] }

        /// The PACEInfo (9.2.1).
        var info: [UInt8] {
            TLVTag(0x30).encode(
                TLVTag(0x06).encode(identifier) + TLVTag(0x02).encode([2])
                    + TLVTag(0x02).encode([UInt8(truncatingIfNeeded: parameters)]))
        }

        /// EF.CardAccess with this one PACEInfo (9.2).
        var cardAccess: [UInt8] { TLVTag(0x31).encode(info) }

        var group: (any ChipGroup)? {
            Mapping.dhGeneric.parameters.contains(parameters)
                ? ChipModularGroup(Int(parameters)) : ChipCurve(Int(parameters))
        }
    }

    private enum State: Sendable {
        case selected
        case mapping(nonce: [UInt8])
        case agreeing(any ChipGroup)
        case authenticating(secret: [UInt8], chipKey: [UInt8], readerKey: [UInt8])
    }

    private let offer: Offer
    private let group: any ChipGroup
    private let passwordKey: [UInt8]
    private var state = State.selected
    /// The private key of generic mapping.
    private var mappingKey: [UInt8] = []
    /// The secret of the session, after the last step.
    private(set) var secret: [UInt8]?

    /// - Parameter password: K of 9.7.3: SHA-1 over the fields of the zone, or the digits of a number.
    init?(_ offer: Offer, password: [UInt8]) {
        guard let group = offer.group, let key = offer.cipher.key(password, 3) else { return nil }
        (self.offer, self.group, passwordKey) = (offer, group, key)
    }

    /// Answers a GENERAL AUTHENTICATE (4.4.4.2) with the next objects of template 7C.
    mutating func respond(to command: CommandAPDU) -> ResponseAPDU {
        guard let list = try? TLVList(command.data, padding: []), list.count == 1, list.first?.tag == 0x7C,
            let objects = list.first?.children
        else { return ResponseAPDU(status: 0x6A80) }
        func object(_ tag: TLVTag) -> [UInt8]? { objects[tag].map { Array($0.value) } }
        let answer: [UInt8]?
        switch state {
        case .selected: answer = objects.isEmpty ? nonce() : nil
        case .mapping(let nonce):
            answer = object(0x81).flatMap { offer.mapping.isIntegrated ? integrate(nonce, $0) : map(nonce, $0) }
        case .agreeing(let mapped): answer = object(0x83).flatMap { agree(mapped, $0) }
        case .authenticating(let secret, let chipKey, let readerKey):
            guard let token = object(0x85) else { return ResponseAPDU(status: 0x6A80) }
            guard token == self.token(secret, chipKey) else { return ResponseAPDU(status: 0x6300) }
            self.secret = secret
            answer = finish(secret, readerKey)
        }
        guard let answer else { return ResponseAPDU(status: 0x6A80) }
        return ResponseAPDU(data: TLVTag(0x7C).encode(answer), status: .success)
    }

    private mutating func nonce() -> [UInt8]? {
        // As long as R of integrated mapping wants it: whole blocks, and no shorter than a key.
        let nonce = Self.random(offer.cipher.keyLength > 16 ? 32 : 16)
        state = .mapping(nonce: nonce)
        return offer.cipher.crypt(nonce, key: passwordKey, encrypting: true).map(TLVTag(0x80).encode)
    }

    private static func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

    private mutating func map(_ nonce: [UInt8], _ readerKey: [UInt8]) -> [UInt8]? {
        guard let pair = group.makeKeyPair(), pair.publicKey != readerKey,
            let shared = group.agree(readerKey, pair.privateKey), let mapped = group.mapped(nonce, shared)
        else { return nil }
        (state, mappingKey) = (.agreeing(mapped), pair.privateKey)
        return TLVTag(0x82).encode(pair.publicKey)
    }

    private mutating func integrate(_ nonce: [UInt8], _ readerNonce: [UInt8]) -> [UInt8]? {
        guard let number = offer.cipher.pseudorandom(nonce, readerNonce, bits: group.prime.count * 8),
            let mapped = group.mapped(number)
        else { return nil }
        state = .agreeing(mapped)
        return TLVTag(0x82).encode([])
    }

    private mutating func agree(_ mapped: any ChipGroup, _ readerKey: [UInt8]) -> [UInt8]? {
        guard let pair = mapped.makeKeyPair(), pair.publicKey != readerKey,
            let shared = mapped.agree(readerKey, pair.privateKey)
        else { return nil }
        state = .authenticating(secret: mapped.secret(of: shared), chipKey: pair.publicKey, readerKey: readerKey)
        return TLVTag(0x84).encode(pair.publicKey)
    }

    /// The chip's token, and with chip authentication mapping its proof (4.4.3.5.2).
    private func finish(_ secret: [UInt8], _ readerKey: [UInt8]) -> [UInt8]? {
        guard let token = token(secret, readerKey).map(TLVTag(0x86).encode) else { return nil }
        guard offer.mapping == .chipAuthentication else { return token }
        guard let curve = group as? ChipCurve, let key = offer.cipher.key(secret, 1) else { return nil }
        let quotient = curve.quotient(mappingKey, TestIssuingState.chipAuthenticationKey)
        return offer.cipher.chipAuthenticationData(quotient, key: key).map { token + TLVTag(0x8A).encode($0) }
    }

    /// The authentication token over a public key (4.4.3.5).
    private func token(_ secret: [UInt8], _ publicKey: [UInt8]) -> [UInt8]? {
        guard let key = offer.cipher.key(secret, 2) else { return nil }
        let data = TLVTag(0x7F49).encode(
            TLVTag(0x06).encode(offer.identifier) + group.publicKeyTag.encode(publicKey))
        return offer.cipher.mac(offer.cipher == .tripleDES ? offer.cipher.padded(data) : data, key: key)
    }
}

extension PassportCipher {
    /// Returns R(s, t), which both nonces of integrated mapping give (ICAO 9303-11, 4.4.3.3.2).
    ///
    /// - Parameters:
    ///   - nonce: s, the chip's.
    ///   - readerNonce: t, as long as a key.
    ///   - bits: the bits of the prime; there are 64 more at least.
    /// - Returns: nil for nonces of another length.
    func pseudorandom(_ nonce: [UInt8], _ readerNonce: [UInt8], bits: Int) -> [UInt8]? {
        let constants = keyLength > 16 ? Self.longConstants : Self.shortConstants
        guard nonce.count == constants.key.count, readerNonce.count == keyLength else { return nil }
        var result: [UInt8] = []
        var key = crypt(nonce, key: readerNonce, encrypting: true)
        while result.count * 8 < bits + 64 {
            guard let current = key?.prefix(keyLength),
                let block = crypt(constants.block, key: Array(current), encrypting: true)
            else { return nil }
            result += block
            key = crypt(constants.key, key: Array(current), encrypting: true)
        }
        return result
    }

    /// c0, which makes keys, and c1, which makes the result, of 128 bits each.
    private static let shortConstants: (key: [UInt8], block: [UInt8]) = (
        [0xA6, 0x68, 0x89, 0x2A, 0x7C, 0x41, 0xE3, 0xCA, 0x73, 0x9F, 0x40, 0xB0, 0x57, 0xD8, 0x59, 0x04],
        [0xA4, 0xE1, 0x36, 0xAC, 0x72, 0x5F, 0x73, 0x8B, 0x01, 0xC1, 0xF6, 0x02, 0x17, 0xC1, 0x88, 0xAD]
    )
    /// The same, of 256 bits.
    private static let longConstants: (key: [UInt8], block: [UInt8]) = (
        [
            0xD4, 0x63, 0xD6, 0x52, 0x34, 0x12, 0x4E, 0xF7, 0x89, 0x70, 0x54, 0x98, 0x6D, 0xCA, 0x0A, 0x17,
            0x4E, 0x28, 0xDF, 0x75, 0x8C, 0xBA, 0xA0, 0x3F, 0x24, 0x06, 0x16, 0x41, 0x4D, 0x5A, 0x16, 0x76,
        ],
        [
            0x54, 0xBD, 0x72, 0x55, 0xF0, 0xAA, 0xF8, 0x31, 0xBE, 0xC3, 0x42, 0x3F, 0xCF, 0x39, 0xD6, 0x9B,
            0x6C, 0xBF, 0x06, 0x66, 0x77, 0xD0, 0xFA, 0xAE, 0x5A, 0xAD, 0xD9, 0x9D, 0xF8, 0xE5, 0x35, 0x17,
        ]
    )

    /// A_IC, the encrypted chip authentication data (ICAO 9303-11, 4.4.3.5.2): the initial value is the encrypted -1.
    func chipAuthenticationData(_ quotient: [UInt8], key: [UInt8]) -> [UInt8]? {
        crypt(
            padded(quotient), key: key, counter: [UInt8](repeating: 0xFF, count: blockLength), encrypting: true)
    }
}

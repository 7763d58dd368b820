import SmartCard

/// Chip authentication, version 1: whether the chip has the private key that belongs to its public key in DG14, and so
/// is not a copy; both sides agree on new keys for secure messaging (ICAO 9303-11, 6.2).
///
/// It is worth as much as DG14 is: the key counts if ``PassiveAuthentication`` found that the issuing state signed the
/// group.
public struct ChipAuthentication: AccessProtocol {
    /// The end of chip authentication.
    public enum Verdict: Hashable, Sendable {
        /// The chip answered within the new session, which only the owner of the private key can.
        case genuine
        /// The chip does not know the new keys: it is a copy.  The session is over.
        case notGenuine
        /// DG14 contains no key.
        case notOffered
        /// The keys in DG14 are of kinds or in groups that this reader does not have.
        case unusableKey
        /// The chip refused a command.
        case refused(AccessRefusal)
        /// A command is longer than the reader passes on, so that nobody can tell.
        case readerLimit
    }

    private enum State {
        case new
        case selecting(KeyPair)
        case agreeing(KeyPair)
        case over
    }

    private let offer: ChipAuthenticationOffer
    private var random: any RandomSource
    private var state = State.new

    /// - Parameter infos: of DG14 or EF.CardSecurity.
    /// - Returns: nil if nothing is offered that this reader has.
    init?(_ infos: SecurityInfos, random: any RandomSource) {
        guard let offer = ChipAuthenticationOffer.best(of: infos) else { return nil }
        (self.offer, self.random) = (offer, random)
    }

    mutating func next(_ response: ResponseAPDU?) -> AccessStep {
        if let response, response.status != .success { return refuse(.status(response.status)) }
        switch (state, response) {
        case (.new, nil): return begin()
        case (.selecting(let pair), _?):
            state = .agreeing(pair)
            return .send(.generalAuthenticate(pair.publicKey))
        case (.agreeing(let pair), let response?):
            // Triple DES: there is no data.  AES: an empty template.
            guard response.data.isEmpty || response.data == [0x7C, 0x00] else { return refuse(.malformedAnswer) }
            return finish(pair)
        default: return refuse(.malformedAnswer)
        }
    }

    private mutating func refuse(_ reason: AccessRefusal) -> AccessStep {
        state = .over
        return .refused(reason)
    }

    /// ICAO 9303-11, 6.2.4.1 and 6.2.4.2: triple DES takes one command, AES two.
    private mutating func begin() -> AccessStep {
        guard let pair = offer.group.makeKeyPair(&random) else { return refuse(.unsupported) }
        let reference = offer.keyIdentifier.map { TLVTag(0x84).encode($0) } ?? []
        guard offer.cipher == .tripleDES else {
            state = .selecting(pair)
            return .send(.setTemplate(0xA4, TLVTag(0x80).encode(offer.identifier) + reference))
        }
        state = .agreeing(pair)
        return .send(.setTemplate(0xA6, TLVTag(0x91).encode(pair.publicKey) + reference))
    }

    private mutating func finish(_ pair: KeyPair) -> AccessStep {
        guard let element = offer.group.agree(pair.privateKey, offer.publicKey) else { return refuse(.unsupported) }
        state = .over
        return .established(SecureMessaging(offer.cipher, secret: offer.group.secret(of: element)))
    }
}

/// A way of chip authentication, with the chip's key for it (ICAO 9303-11, 9.2.3 and 9.2.4).
struct ChipAuthenticationOffer: Sendable {
    let cipher: SessionCipher
    let group: any KeyAgreement
    let publicKey: [UInt8]
    /// The number of the key, where the chip has several.
    let keyIdentifier: [UInt8]?
    let isElliptic: Bool

    /// The object identifier of the protocol, in the bytes of its encoding.
    var identifier: [UInt8] { ChipAuthenticationInfo.prefix + [isElliptic ? 2 : 1, cipher.rawValue] }

    /// The best one: with an elliptic curve, then with the longest key.
    static func best(of infos: SecurityInfos) -> ChipAuthenticationOffer? {
        let protocols = infos.infos.compactMap(ChipAuthenticationInfo.init)
        let offers = infos.infos.compactMap(ChipAuthenticationPublicKey.init).flatMap { key in
            let named = protocols.filter { $0.isElliptic == key.isElliptic && $0.mayUse(key) }
            // Some chips have a key and name no protocol: it is triple DES with that kind of key.
            let ciphers = protocols.isEmpty ? [.tripleDES] : named.map(\.cipher)
            return ciphers.map { cipher in
                ChipAuthenticationOffer(
                    cipher: cipher, group: key.group, publicKey: key.value, keyIdentifier: key.keyIdentifier,
                    isElliptic: key.isElliptic)
            }
        }
        return offers.max { ($0.isElliptic ? 1 : 0, $0.cipher.rawValue) < ($1.isElliptic ? 1 : 0, $1.cipher.rawValue) }
    }
}

extension SecurityInfos {
    /// True if there is a ChipAuthenticationPublicKeyInfo, of whatever kind.
    var hasChipAuthenticationKey: Bool {
        infos.contains { $0.identifier.starts(with: ChipAuthenticationPublicKey.prefix) }
    }
}

extension CommandAPDU {
    /// MSE:Set, whose P2 tells the template: A6 for a key agreement, A4 for an authentication (ISO/IEC 7816-4,
    /// 11.5.11).
    fileprivate static func setTemplate(_ template: UInt8, _ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(
            unchecked: (0x00, 0x22, 0x41, template), data: data, lengthCoding: data.count > 255 ? .extended : .short)
    }

    /// GENERAL AUTHENTICATE with the reader's public key (ICAO 9303-11, 6.2.4.2).
    fileprivate static func generalAuthenticate(_ publicKey: [UInt8]) -> CommandAPDU {
        let data = TLVTag(0x7C).encode(TLVTag(0x80).encode(publicKey))
        return CommandAPDU(
            unchecked: (0x00, 0x86, 0x00, 0x00), data: data, ne: data.count > 255 ? 65_536 : 256,
            lengthCoding: data.count > 255 ? .extended : .short)
    }
}

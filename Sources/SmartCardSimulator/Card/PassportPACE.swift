import SmartCard

/// The chip's side of PACE with generic mapping on a curve (ICAO 9303-11, 4.4), from MSE:Set AT to the session's secret.
struct PassportPACE: Sendable {
    /// A variant of PACE, as EF.CardAccess offers it.
    struct Offer: Hashable, Sendable {
        let cipher: PassportCipher
        /// The number of the curve (ICAO 9303-11, 9.5.1, table 6).
        let parameters: Int

        /// id-PACE-ECDH-GM with the cipher (9.2.1).
        var identifier: [UInt8] { [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x04, 0x02, cipher.number] }

        /// EF.CardAccess with this one PACEInfo (9.2).
        var cardAccess: [UInt8] {
            TLVTag(0x31).encode(
                TLVTag(0x30).encode(
                    TLVTag(0x06).encode(identifier) + TLVTag(0x02).encode([2])
                        + TLVTag(0x02).encode([UInt8(truncatingIfNeeded: parameters)])))
        }
    }

    private enum State: Sendable {
        case selected
        case mapping(nonce: [UInt8])
        case agreeing(ChipCurve)
        case authenticating(secret: [UInt8], chipKey: [UInt8], readerKey: [UInt8])
    }

    private let offer: Offer
    private let curve: ChipCurve
    private let passwordKey: [UInt8]
    private var state = State.selected
    /// The secret of the session, after the last step.
    private(set) var secret: [UInt8]?

    /// - Parameter password: K of 9.7.3: SHA-1 over the fields of the zone, or the digits of a number.
    init?(_ offer: Offer, password: [UInt8]) {
        guard let curve = ChipCurve(offer.parameters), let key = offer.cipher.key(password, 3) else { return nil }
        (self.offer, self.curve, passwordKey) = (offer, curve, key)
    }

    /// Answers a GENERAL AUTHENTICATE (4.4.4.2) with the next object of template 7C.
    mutating func respond(to command: CommandAPDU) -> ResponseAPDU {
        guard let list = try? TLVList(command.data, padding: []), list.count == 1, list.first?.tag == 0x7C,
            let objects = list.first?.children
        else { return ResponseAPDU(status: 0x6A80) }
        func object(_ tag: TLVTag) -> [UInt8]? { objects[tag].map { Array($0.value) } }
        let answer: (tag: TLVTag, value: [UInt8])?
        switch state {
        case .selected: answer = objects.isEmpty ? nonce() : nil
        case .mapping(let nonce): answer = object(0x81).flatMap { map(nonce, $0) }
        case .agreeing(let mapped): answer = object(0x83).flatMap { agree(mapped, $0) }
        case .authenticating(let secret, let chipKey, let readerKey):
            guard let token = object(0x85) else { return ResponseAPDU(status: 0x6A80) }
            guard token == self.token(secret, chipKey) else { return ResponseAPDU(status: 0x6300) }
            self.secret = secret
            answer = self.token(secret, readerKey).map { (0x86, $0) }
        }
        guard let answer else { return ResponseAPDU(status: 0x6A80) }
        return ResponseAPDU(data: TLVTag(0x7C).encode(answer.tag.encode(answer.value)), status: .success)
    }

    private mutating func nonce() -> (TLVTag, [UInt8])? {
        // A whole number of blocks for every cipher.
        let nonce = (0..<16).map { _ in UInt8.random(in: 0...255) }
        state = .mapping(nonce: nonce)
        return offer.cipher.crypt(nonce, key: passwordKey, encrypting: true).map { (0x80, $0) }
    }

    private mutating func map(_ nonce: [UInt8], _ readerKey: [UInt8]) -> (TLVTag, [UInt8])? {
        guard let pair = curve.makeKeyPair(), let shared = curve.multiply(readerKey, by: pair.privateKey),
            let mapped = curve.mapped(nonce, shared)
        else { return nil }
        state = .agreeing(mapped)
        return (0x82, pair.publicKey)
    }

    private mutating func agree(_ mapped: ChipCurve, _ readerKey: [UInt8]) -> (TLVTag, [UInt8])? {
        guard let pair = mapped.makeKeyPair(), pair.publicKey != readerKey,
            let shared = mapped.multiply(readerKey, by: pair.privateKey)
        else { return nil }
        // The x-coordinate, with its leading zeros (9.7.3).
        let secret = Array(shared.dropFirst().prefix((shared.count - 1) / 2))
        state = .authenticating(secret: secret, chipKey: pair.publicKey, readerKey: readerKey)
        return (0x84, pair.publicKey)
    }

    /// The authentication token over a public key (4.4.3.5).
    private func token(_ secret: [UInt8], _ publicKey: [UInt8]) -> [UInt8]? {
        guard let key = offer.cipher.key(secret, 2) else { return nil }
        let data = TLVTag(0x7F49).encode(TLVTag(0x06).encode(offer.identifier) + TLVTag(0x86).encode(publicKey))
        return offer.cipher.mac(offer.cipher == .tripleDES ? offer.cipher.padded(data) : data, key: key)
    }
}

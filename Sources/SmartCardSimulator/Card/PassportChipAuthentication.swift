import SmartCard

/// The chip's side of chip authentication, version 1, on a curve (ICAO 9303-11, 6.2), and its key in DG14.
///
/// The private key follows from the machine readable zone, so anyone can derive it, and it proves nothing.
struct PassportChipAuthentication: Sendable {
    let cipher: PassportCipher
    private let curve: ChipCurve
    private let privateKey: [UInt8]

    /// - Parameters:
    ///   - parameters: the number of the curve (9.5.1, table 6).
    ///   - document: the machine readable zone, so that each document has a key of its own.
    ///   - isCopy: true for the key of a chip that has only the files of another.
    /// - Returns: nil if no curve has this number.
    init?(_ cipher: PassportCipher, parameters: Int, document: String, isCopy: Bool) {
        guard let curve = ChipCurve(parameters) else { return nil }
        let seed = Array("swift-contactless TEST \(isCopy ? "copied " : "")chip authentication \(document)".utf8)
        // 72 bytes at least are more than any order has; libcrypto takes the number modulo the order.
        privateKey = (UInt8(1)...3).flatMap { RSAKey.sha256(seed + [$0]) ?? [] }
        (self.cipher, self.curve) = (cipher, curve)
    }

    /// id-CA-ECDH with the cipher (9.2.3).
    private var identifier: [UInt8] { [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x03, 0x02, cipher.number] }

    /// ChipAuthenticationInfo of version 1 (9.2.3), and ChipAuthenticationPublicKeyInfo (9.2.4), whose key spells out the
    /// parameters of its curve; nil if libcrypto refuses.
    var securityInfos: [[UInt8]]? {
        guard let parameters = curve.explicitParameters, let publicKey = curve.publicKey(of: privateKey) else {
            return nil
        }
        let sequence = TLVTag(0x30)
        let info = TLVTag(0x06).encode(identifier) + TLVTag(0x02).encode([1])
        // id-PK-ECDH, and id-ecPublicKey of RFC 5480, 2.1.1.
        let purpose = TLVTag(0x06).encode([0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x01, 0x02])
        let algorithm = TLVTag(0x06).encode([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]) + parameters
        let key = sequence.encode(sequence.encode(algorithm) + TLVTag(0x03).encode([0x00] + publicKey))
        return [sequence.encode(info), sequence.encode(purpose + key)]
    }

    /// MSE:Set AT (6.2.4.2): the name of the protocol.
    func select(_ command: CommandAPDU) -> StatusWord {
        guard let objects = try? TLVList(command.data, padding: []),
            objects[0x80].map({ Array($0.value) }) == identifier
        else { return 0x6A80 }
        // DG14 numbers no key.
        return objects[0x84] == nil ? .success : 0x6A88
    }

    /// GENERAL AUTHENTICATE after MSE:Set AT (6.2.4.2), with the reader's key in template 7C.
    ///
    /// - Returns: the session that the response ends the old one for; nil for a key that is none.
    func agree(generalAuthenticate command: CommandAPDU) -> PassportSession? {
        guard let list = try? TLVList(command.data, padding: []) else { return nil }
        return agree(list[0x7C]?.children[0x80])
    }

    /// MSE:Set KAT (6.2.4.1), with the reader's key in object 91: all of it for triple DES.
    func agree(setTemplate command: CommandAPDU) -> PassportSession? {
        guard cipher == .tripleDES, let objects = try? TLVList(command.data, padding: []), objects[0x84] == nil else {
            return nil
        }
        return agree(objects[0x91])
    }

    private func agree(_ readerKey: TLV?) -> PassportSession? {
        guard let readerKey, let shared = curve.agree(Array(readerKey.value), privateKey) else { return nil }
        return PassportSession(cipher, secret: curve.secret(of: shared))
    }
}

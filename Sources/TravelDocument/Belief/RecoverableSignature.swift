import CCryptoLegacy

/// Digital signature scheme 1 of ISO/IEC 9796-2, with part of the message in the signature, as active authentication
/// has it (ICAO 9303-11, 6.1 and appendix F).
enum RecoverableSignature {
    /// The hash functions by the identifier before the trailer `CC` (ISO/IEC 10118-3).
    private static let digests: [UInt8: Digest] = [
        0x33: .sha1, 0x34: .sha256, 0x35: .sha512, 0x36: .sha384, 0x38: .sha224,
    ]

    /// The first byte of a block whose message is longer than what it contains.
    private static let header: UInt8 = 0x6A

    /// Verifies a signature over a message that ends with bytes that the signature does not contain.
    ///
    /// - Parameter rest: those bytes.
    /// - Returns: the hash function of the signature; nil if it is wrong.
    static func verify(_ signature: [UInt8], _ key: SignatureKey, rest: [UInt8]) -> Digest? {
        guard case .rsa(let modulus) = key.kind, let recovered = key.recover(signature) else { return nil }
        // The signer may have taken the difference to the modulus, which is the smaller number of the two.
        for block in [recovered, difference(modulus, recovered)] {
            guard let block, let digest = digest(of: block, rest: rest) else { continue }
            return digest
        }
        return nil
    }

    /// The hash function of a block: `6A`, the message's first part, its digest, and the trailer.
    ///
    /// - Returns: nil if the block is not one, or its digest is another.
    private static func digest(of block: [UInt8], rest: [UInt8]) -> Digest? {
        let trailer: (digest: Digest, length: Int)
        switch block.last {
        case 0xBC: trailer = (.sha1, 1)
        case 0xCC:
            guard let digest = block.dropLast().last.flatMap({ digests[$0] }) else { return nil }
            trailer = (digest, 2)
        default: return nil
        }
        let content = block.dropFirst().dropLast(trailer.length)
        let length = trailer.digest.hash([]).count
        guard block.first == header, content.count >= length else { return nil }
        return trailer.digest.hash(content.dropLast(length) + rest).elementsEqual(content.suffix(length))
            ? trailer.digest : nil
    }

    private static func difference(_ modulus: [UInt8], _ number: [UInt8]) -> [UInt8]? {
        BigNumber(BigNumber(modulus), BigNumber(number)) { result, operands, _ in
            BN_sub(result, operands[0], operands[1])
        }?.bytes(modulus.count)
    }
}

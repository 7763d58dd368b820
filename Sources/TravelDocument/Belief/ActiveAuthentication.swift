public import SmartCard

/// Active authentication: whether the chip has the private key that belongs to DG15, and so is not a copy
/// (ICAO 9303-11, 6.1).
///
/// It is worth as much as DG15 is: the key counts if ``PassiveAuthentication`` found that the issuing state signed the
/// group.
public struct ActiveAuthentication: Sendable {
    /// The end of active authentication.
    public enum Verdict: Hashable, Sendable {
        /// The chip has the private key.
        case genuine
        /// The chip does not have it: the signature is not that of the key in DG15.
        case wrongSignature
        /// The response is longer than the reader or the session can carry.  It says nothing of the chip.
        case readerLimit(needed: Int, available: Int)
        /// The chip refused the command.
        case refused(StatusWord)
        /// The key is of a kind that this reader does not have, or on a curve without a name.
        case unusableKey(Finding.Reason)
    }

    /// A step of the protocol.
    enum Step: Sendable {
        case send(CommandAPDU)
        case finished(Verdict)
    }

    private enum State {
        case new
        case waiting(SignatureKey)
        case over
    }

    /// RND.IFD.
    private let challenge: [UInt8]
    private let longestResponse: Int
    private let key: Result<SignatureKey, SignatureKey.Fault>
    /// The hash function of ECDSA, as DG14 tells it; nil: it does not.
    private let digest: Digest?
    private var state = State.new

    /// - Parameters:
    ///   - publicKey: DG15, complete.
    ///   - securityInfos: DG14, complete, where the chip has one: it tells the hash function of ECDSA.
    ///   - longestResponse: the most data bytes of a response, in the clear.
    init(
        publicKey file: [UInt8], securityInfos: [UInt8]?, longestResponse: Int, random: inout some RandomSource
    ) throws(MalformedObject) {
        let due = "ActiveAuthenticationPublicKeyInfo"
        guard file.count <= SecurityObject.maximumLength else { throw MalformedObject(due: due, offset: 0) }
        let info = try ASN1(file, 0x6F, "DG15").inner(ASN1.Tag.sequence, due)
        do throws(SignatureKey.Fault) { key = .success(try SignatureKey(info)) } catch { key = .failure(error) }
        digest = try securityInfos.flatMap(Self.digest)
        challenge = random.bytes(8)
        self.longestResponse = longestResponse
    }

    private static let infoIdentifier = OID("2.23.136.1.1.5").content

    /// The signature algorithm of ActiveAuthenticationInfo (ICAO 9303-11, 9.2).
    ///
    /// - Returns: nil for another info, and for one of another form.
    static func signatureAlgorithm(_ info: SecurityInfos.Info) -> OID? {
        guard info.identifier == infoIdentifier, info.parameters.count == 2, info.parameters[1].tag == 0x06 else {
            return nil
        }
        return OID(content: info.parameters[1].value)
    }

    private static func digest(in file: [UInt8]) throws(MalformedObject) -> Digest? {
        try SecurityInfos(dataGroup14: file).infos.first { $0.identifier == infoIdentifier }
            .flatMap(signatureAlgorithm).flatMap(SignatureAlgorithm.init)?.digest
    }

    /// Takes the chip's response; nil at the start.
    mutating func next(_ response: ResponseAPDU?) -> Step {
        switch (state, response) {
        case (.new, nil): return begin()
        case (.waiting(let key), let response?):
            state = .over
            return .finished(judge(response, key))
        default:
            state = .over
            return .finished(.wrongSignature)
        }
    }

    private mutating func begin() -> Step {
        state = .over
        let key: SignatureKey
        switch self.key {
        case .success(let usable): key = usable
        case .failure(.malformed(let error)): return .finished(.unusableKey(.malformedKey(error)))
        case .failure(.unsupported(let oid)): return .finished(.unusableKey(.unsupportedAlgorithm(oid)))
        case .failure(.unknownCurve): return .finished(.unusableKey(.unknownCurve))
        }
        // Nothing is sent whose answer cannot come: a chip may end the session over it.
        if case .rsa(let modulus) = key.kind, modulus.count > longestResponse {
            return .finished(.readerLimit(needed: modulus.count, available: longestResponse))
        }
        state = .waiting(key)
        let ne = longestResponse > 256 ? 65_536 : 256
        return .send(
            CommandAPDU(
                unchecked: (0x00, 0x88, 0x00, 0x00), data: challenge, ne: ne,
                lengthCoding: ne > 256 ? .extended : .short))
    }

    private func judge(_ response: ResponseAPDU, _ key: SignatureKey) -> Verdict {
        guard response.status == .success else { return .refused(response.status) }
        let isGenuine =
            switch key.kind {
            case .rsa: RecoverableSignature.verify(response.data, key, rest: challenge) != nil
            case .elliptic: isSigned(response.data, key)
            }
        return isGenuine ? .genuine : .wrongSignature
    }

    /// ECDSA, plain as BSI TR-03111 has it, or in the SEQUENCE that some chips send.
    private func isSigned(_ signature: [UInt8], _ key: SignatureKey) -> Bool {
        // Where DG14 does not tell the hash function, any will do: the key's owner alone can sign.
        let digests = digest.map { [$0] } ?? [.sha1, .sha224, .sha256, .sha384, .sha512]
        return digests.contains { digest in
            [SignatureAlgorithm.Scheme.plainECDSA, .ecdsa].contains { scheme in
                key.verify(signature, of: challenge, by: SignatureAlgorithm(scheme, digest))
            }
        }
    }
}

extension ActiveAuthentication.Verdict: CustomStringConvertible {
    public var description: String {
        switch self {
        case .genuine: "the chip has the private key of DG15"
        case .wrongSignature: "the chip does not have the private key of DG15: it is a copy"
        case .readerLimit(let needed, let available):
            "the signature has \(needed) bytes, and this reader carries \(available). Use a reader with long responses."
        case .refused(let status): "the chip refused active authentication: \(status)"
        case .unusableKey(let reason): "the key in DG15 cannot be used: \(reason)"
        }
    }
}

public import SmartCard

/// The data that a card signed for this transaction alone.
public struct SignedDynamicData: Hashable, Sendable {
    /// The ICC dynamic number, data element 9F4C, 2 to 8 bytes.
    public let iccDynamicNumber: [UInt8]
    /// The rest of the ICC dynamic data: in CDA the part after the transaction data hash code, as contactless kernels
    /// define it.
    public let rest: [UInt8]
}

/// The data that a card signed along with its cryptogram.
public struct SignedCryptogram: Hashable, Sendable {
    public let dynamicData: SignedDynamicData
    /// Cryptogram Information Data, data element 9F27.
    public let cryptogramInformationData: UInt8
    /// The application cryptogram, data element 9F26, 8 bytes.
    public let applicationCryptogram: [UInt8]
}

extension ICCPublicKey {
    /// Performs standard dynamic data authentication: verifies the answer to INTERNAL AUTHENTICATE (EMV Book 2,
    /// 6.5.2).
    ///
    /// - Parameters:
    ///   - signature: the signed dynamic application data, 9F4B.
    ///   - terminalData: the values for the DDOL, as they were sent.
    public func dda(
        _ signature: [UInt8], terminalData: [UInt8]
    ) -> Result<SignedDynamicData, AuthenticationFailure> {
        Result { () throws(AuthenticationFailure) in
            var dynamicData = try recover(signature, format: 0x05, terminalData: terminalData)
            return SignedDynamicData(
                iccDynamicNumber: try dynamicData.dynamicNumber(), rest: dynamicData.remaining)
        }
    }

    /// Performs combined dynamic data authentication: verifies the answer to GENERATE AC (EMV Book 2, 6.6.2).
    ///
    /// - Parameters:
    ///   - response: the data field of the answer as the card sent it, a template 77 that contains 9F27 and 9F4B.
    ///   - transactionData: the values that were sent for the PDOL, without tag 83 and length, those for CDOL1, and at
    ///     the second GENERATE AC those for CDOL2.
    ///   - unpredictableNumber: 9F37, as it was sent with this GENERATE AC.
    public func cda(
        response: [UInt8], transactionData: [UInt8], unpredictableNumber: [UInt8]
    ) -> Result<SignedCryptogram, AuthenticationFailure> {
        Result { () throws(AuthenticationFailure) in
            let subject = AuthenticationFailure.Subject.signedDynamicData
            guard let list = try? TLVList(response), let template = list.first, template.tag == 0x77, list.count == 1
            else { throw AuthenticationFailure(subject, .malformed(0x77)) }
            let objects = template.children
            guard let signature = objects[0x9F4B] else { throw AuthenticationFailure(subject, .missing(0x9F4B)) }
            guard let information = objects[0x9F27] else { throw AuthenticationFailure(subject, .missing(0x9F27)) }

            var dynamicData = try recover(Array(signature.value), format: 0x05, terminalData: unpredictableNumber)
            // EMV Book 2, table 19.
            let number = try dynamicData.dynamicNumber()
            let signedInformation = try dynamicData.take(1)
            let cryptogram = try dynamicData.take(8)
            let transactionHash = try dynamicData.take(20)
            // EMV Book 2, 6.6.2 step 6.
            guard signedInformation == Array(information.value) else {
                throw AuthenticationFailure(subject, .cryptogramInformationData)
            }
            // EMV Book 2, 6.6.2 steps 10 to 12: the objects as they were returned, in their order, without 9F4B.
            let returned = objects.filter { $0.tag != 0x9F4B }.flatMap(\.encoded)
            guard sha1(transactionData + returned) == transactionHash else {
                throw AuthenticationFailure(subject, .transactionData)
            }
            return SignedCryptogram(
                dynamicData: SignedDynamicData(iccDynamicNumber: number, rest: dynamicData.remaining),
                cryptogramInformationData: signedInformation[0], applicationCryptogram: cryptogram)
        }
    }

    /// Performs fast dynamic data authentication: verifies 9F4B over 9F37, 9F02, 5F2A and 9F69 (EMV Contactless Book
    /// C-3, Annex C).
    ///
    /// - Parameters:
    ///   - purpose: the purpose in this transaction.  A signature for the other purpose fails.
    ///   - data: returns the value of a data object: the card's for 9F4B and 9F69, the terminal's for the others, as
    ///     they were sent.
    public func fdda(
        for purpose: SignaturePurpose, data: (TLVTag) -> [UInt8]?
    ) -> Result<SignedDynamicData, AuthenticationFailure> {
        Result { () throws(AuthenticationFailure) in
            func object(
                _ tag: TLVTag, of subject: AuthenticationFailure.Subject
            ) throws(AuthenticationFailure) -> [UInt8] {
                guard let value = data(tag) else { throw AuthenticationFailure(subject, .missing(tag)) }
                return value
            }
            let signature = try object(0x9F4B, of: .signedDynamicData)
            let related = try object(0x9F69, of: .cardAuthenticationRelatedData)
            guard (5...16).contains(related.count) else {
                throw AuthenticationFailure(.cardAuthenticationRelatedData, .malformed(0x9F69))
            }
            guard related[0] == 0x01 else { throw AuthenticationFailure(.cardAuthenticationRelatedData, .version) }
            var terminalData: [UInt8] = []
            for tag in [0x9F37, 0x9F02, 0x5F2A] as [TLVTag] {
                terminalData += try object(tag, of: .signedDynamicData)
            }
            var dynamicData = try recover(
                signature, format: purpose.format(0x05), terminalData: terminalData + related)
            return SignedDynamicData(
                iccDynamicNumber: try dynamicData.dynamicNumber(), rest: dynamicData.remaining)
        }
    }

    /// Recovers signed dynamic application data and verifies the hash over it and `terminalData` (EMV Book 2, 6.5.2
    /// steps 1 to 7, 6.6.2 steps 1 to 9).
    private func recover(
        _ signature: [UInt8], format: UInt8, terminalData: [UInt8]
    ) throws(AuthenticationFailure) -> DynamicData {
        // EMV Book 2, table 17: format, hash algorithm, length of the dynamic data, dynamic data, padding.
        let recovered = try RecoveredData(.signedDynamicData, signature, by: key, format: format, minimumLength: 4)
        try recovered.verify(algorithm: recovered[2], rest: terminalData)
        let end = 4 + Int(recovered[3])
        try recovered.require(end <= recovered.end, .dynamicData)
        return DynamicData(bytes: recovered[4..<end])
    }
}

/// A reader of the ICC dynamic data, from the left.
private struct DynamicData {
    var bytes: ArraySlice<UInt8>

    var remaining: [UInt8] { Array(bytes) }

    mutating func take(_ count: Int) throws(AuthenticationFailure) -> [UInt8] {
        guard bytes.count >= count else { throw AuthenticationFailure(.signedDynamicData, .dynamicData) }
        defer { bytes = bytes.dropFirst(count) }
        return Array(bytes.prefix(count))
    }

    /// EMV Book 2, 6.5.1: the length of the ICC dynamic number, 2 to 8, and the number.
    mutating func dynamicNumber() throws(AuthenticationFailure) -> [UInt8] {
        let length = Int(try take(1)[0])
        guard (2...8).contains(length) else { throw AuthenticationFailure(.signedDynamicData, .dynamicNumber) }
        return try take(length)
    }
}

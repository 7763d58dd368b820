public import SmartCard

/// A session's secure messaging: commands are encrypted and authenticated, and so are the responses (ICAO 9303-11, 9.8).
///
/// It is a value without I/O.  Call ``protect(_:)`` and ``unprotect(_:)`` in turn, for one command after the other.  The
/// first response that is not what the session's keys make ends it for good.
struct SecureMessaging: Sendable {
    private let cipher: SessionCipher
    let keys: (encryption: [UInt8], authentication: [UInt8])
    /// SSC, the send sequence counter: a block, most significant byte first.
    private var counter: [UInt8]
    private var end: SecureMessagingError?

    /// Starts a session.
    ///
    /// - Parameters:
    ///   - secret: both keys are derived from it.
    ///   - counter: as many bytes as a block of the cipher; nil: zeros.
    init(_ cipher: SessionCipher, secret: [UInt8], counter: [UInt8]? = nil) {
        self.cipher = cipher
        keys = (cipher.deriveKey(secret, for: .encryption), cipher.deriveKey(secret, for: .authentication))
        self.counter = counter ?? [UInt8](repeating: 0, count: cipher.blockLength)
        precondition(self.counter.count == cipher.blockLength)
    }

    /// Returns the most clear bytes in a response of so many protected ones: 231 with triple DES in 256, and 223 with AES.
    func mostData(inResponseOf length: Int) -> Int {
        // 87 with its length and the padding indicator, 99 and 8E; and one byte of padding at least.
        let overhead = (length > 256 ? 5 : 4) + 4 + 10
        return max(0, length - overhead) / cipher.blockLength * cipher.blockLength - 1
    }

    // MARK: Commands

    /// Returns the protected form of a command (ICAO 9303-11, 9.8.4).
    ///
    /// - Throws: ``SecureMessagingError``, if the session is over or the data is too long to protect.
    mutating func protect(_ command: CommandAPDU) throws -> CommandAPDU {
        if let end { throw end }
        count()
        let header = [command.cla | 0x0C, command.ins, command.p1, command.p2]
        var objects: [UInt8] = []
        if !command.data.isEmpty {
            guard let cryptogram = crypt(cipher.padded(command.data), encrypting: true) else {
                throw SecureMessagingError.tooLong
            }
            // 9.8.4.2: an odd INS has data objects in its data field, and no padding indicator.
            objects +=
                command.ins.isMultiple(of: 2)
                ? DataObject.encrypted.encode([0x01] + cryptogram)
                : DataObject.encryptedObjects.encode(cryptogram)
        }
        let isExtended = command.lengthCoding == .extended
        if let ne = command.ne {
            // 0 stands for the most.
            let le = [UInt8(truncatingIfNeeded: ne >> 8), UInt8(truncatingIfNeeded: ne)]
            objects += DataObject.expectedLength.encode(isExtended ? le : Array(le.suffix(1)))
        }
        let message = cipher.padded(header) + (objects.isEmpty ? [] : cipher.padded(objects))
        guard let mac = cipher.mac(counter + message, key: keys.authentication) else {
            throw SecureMessagingError.tooLong
        }
        let data = objects + DataObject.mac.encode(mac)
        return try CommandAPDU(
            cla: header[0], ins: header[1], p1: header[2], p2: header[3], data: data,
            ne: isExtended || data.count > 255 ? 65_536 : 256, lengthCoding: isExtended ? .extended : .short)
    }

    // MARK: Responses

    /// Checks a response and returns its clear form (ICAO 9303-11, 9.8.5).
    ///
    /// - Throws: ``SecureMessagingError``; the session is then over.
    mutating func unprotect(_ response: ResponseAPDU) throws(SecureMessagingError) -> ResponseAPDU {
        if let end { throw end }
        count()
        do throws(SecureMessagingError) { return try clear(response) } catch {
            end = error
            throw error
        }
    }

    private func clear(_ response: ResponseAPDU) throws(SecureMessagingError) -> ResponseAPDU {
        guard !response.data.isEmpty else { throw .ended(response.status) }
        guard let list = try? TLVList(response.data, padding: []) else { throw .malformed }
        let objects = Array(list)
        guard objects.last?.tag == DataObject.mac, let mac = objects.last else { throw .notAuthenticated }
        let authenticated = objects.dropLast()
        guard
            let expected = cipher.mac(
                counter + cipher.padded(Array(response.data[..<mac.offset])), key: keys.authentication),
            Self.areEqual(expected, Array(mac.value))
        else { throw .notAuthenticated }

        // From here on the chip has made it.  It may still be wrong.
        let tags = authenticated.map(\.tag)
        guard Set(tags).count == tags.count, tags.allSatisfy(DataObject.ofResponses.contains) else { throw .malformed }
        guard let status = list[DataObject.status]?.value,
            status.elementsEqual([response.status.sw1, response.status.sw2])
        else { throw .otherStatus }
        switch (list[DataObject.encrypted]?.value, list[DataObject.encryptedObjects]?.value) {
        case (nil, nil): return ResponseAPDU(status: response.status)
        case (let cryptogram?, nil) where cryptogram.first == 0x01:
            return try decrypted(cryptogram.dropFirst(), response.status)
        case (nil, let cryptogram?): return try decrypted(cryptogram, response.status)
        default: throw .malformed
        }
    }

    private func decrypted(
        _ cryptogram: ArraySlice<UInt8>, _ status: StatusWord
    ) throws(SecureMessagingError) -> ResponseAPDU {
        guard !cryptogram.isEmpty, let blocks = crypt(Array(cryptogram), encrypting: false),
            let data = cipher.unpadded(blocks)
        else { throw .malformed }
        return ResponseAPDU(data: data, status: status)
    }

    /// Ends the session, after an exchange of which nobody knows whether the chip has counted it.
    mutating func abandon() { end = end ?? .interrupted }

    // MARK: Parts

    /// ICAO 9303-11, 9.8.6.1 and 9.8.7.1: the initial value is zero for triple DES, and the encrypted counter for AES.
    private func crypt(_ blocks: [UInt8], encrypting: Bool) -> [UInt8]? {
        let iv = cipher == .tripleDES ? nil : cipher.encrypt(block: counter, key: keys.encryption)
        return cipher.cbc(blocks, key: keys.encryption, iv: iv, encrypting: encrypting)
    }

    private mutating func count() {
        for index in counter.indices.reversed() {
            counter[index] &+= 1
            if counter[index] != 0 { return }
        }
    }

    /// Compares in a time that does not depend on where they differ.
    private static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.count == b.count && zip(a, b).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// The data objects of secure messaging (ISO/IEC 7816-4, 10.2).
    private enum DataObject {
        static let encryptedObjects: TLVTag = 0x85
        static let encrypted: TLVTag = 0x87
        static let mac: TLVTag = 0x8E
        static let expectedLength: TLVTag = 0x97
        static let status: TLVTag = 0x99
        static let ofResponses: Set<TLVTag> = [encryptedObjects, encrypted, status]
    }
}

/// The end of a session.
public enum SecureMessagingError: Error, Hashable, Sendable {
    /// The chip answered without protection, as it does when it has ended the session.
    case ended(StatusWord)
    /// The MAC is absent or wrong: the chip does not have the session's keys, or somebody changed the response.
    case notAuthenticated
    /// The status word outside differs from the one that the chip protected.
    case otherStatus
    /// The response is authentic, and is not as the standard has it.
    case malformed
    /// The command is too long to protect.
    case tooLong
    /// An exchange had no response, so that the counters of both sides may differ.
    case interrupted
}

extension SecureMessagingError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .ended(let status): "the chip ended the session: \(status). Begin again with access control."
        case .notAuthenticated:
            "a response was not authentic: it was changed on its way, or another chip answered. Begin again."
        case .otherStatus: "the status of a response was changed on its way. Begin again."
        case .malformed: "a response of the chip breaks the rules of secure messaging"
        case .tooLong: "the command is too long for secure messaging"
        case .interrupted: "the session ended with an exchange that had no response. Begin again with access control."
        }
    }
}

import SmartCard

/// The ciphers of a travel document's session (ICAO 9303-11, 9.8).
enum PassportCipher: String, CaseIterable, Hashable, Sendable {
    case tripleDES = "3des"
    case aes128 = "aes-128"
    case aes192 = "aes-192"
    case aes256 = "aes-256"

    static let names = allCases.map(\.rawValue).joined(separator: ", ")

    var blockLength: Int { self == .tripleDES ? 8 : 16 }

    var keyLength: Int {
        switch self {
        case .tripleDES, .aes128: 16
        case .aes192: 24
        case .aes256: 32
        }
    }

    /// The last byte of the object identifiers of PACE (ICAO 9303-11, 9.2.1).
    var number: UInt8 {
        switch self {
        case .tripleDES: 1
        case .aes128: 2
        case .aes192: 3
        case .aes256: 4
        }
    }

    /// The key for a use: 1 to encrypt, 2 to authenticate, 3 of a password (ICAO 9303-11, 9.7.1).
    func key(_ secret: [UInt8], _ use: UInt8) -> [UInt8]? {
        let data = secret + [0, 0, 0, use]
        return (keyLength > 16 ? RSAKey.sha256(data) : RSAKey.sha1(data)).map { Array($0.prefix(keyLength)) }
    }

    /// Method 2 of ISO/IEC 9797-1: `80`, then as many `00` as it takes.
    func padded(_ data: [UInt8]) -> [UInt8] {
        BlockPadding.padded(data, blockLength: blockLength)
    }

    /// Encrypts or decrypts whole blocks by CBC.
    ///
    /// - Parameter counter: with AES the initial value is the encrypted counter; nil for zeros.
    func crypt(_ blocks: [UInt8], key: [UInt8], counter: [UInt8]? = nil, encrypting: Bool) -> [UInt8]? {
        guard self != .tripleDES else {
            let cipher = TripleDES(key)
            return encrypting ? cipher?.encryptChained(blocks) : cipher?.decryptChained(blocks)
        }
        guard let cipher = AES(key) else { return nil }
        guard let counter else { return cipher.cbc(blocks, encrypting: encrypting) }
        return cipher.cbc(counter, encrypting: true).flatMap { cipher.cbc(blocks, iv: $0, encrypting: encrypting) }
    }

    /// Returns the MAC, 8 bytes.
    ///
    /// - Parameter message: of whole blocks in secure messaging; triple DES takes no others.
    func mac(_ message: [UInt8], key: [UInt8]) -> [UInt8]? {
        self == .tripleDES ? TripleDES(key)?.mac(message) : AES(key)?.cmac(message).map { Array($0.prefix(8)) }
    }
}

/// The keys and the counter of a session (ICAO 9303-11, 9.8).
struct PassportSession {
    let cipher: PassportCipher
    let encryptionKey: [UInt8]
    let authenticationKey: [UInt8]
    private(set) var counter: [UInt8]
    var responses = 0
    var last: [UInt8] = []

    /// - Parameter counter: nil: zeros.
    init?(_ cipher: PassportCipher, secret: [UInt8], counter: [UInt8]? = nil) {
        guard let encryption = cipher.key(secret, 1), let authentication = cipher.key(secret, 2) else { return nil }
        self.cipher = cipher
        (encryptionKey, authenticationKey) = (encryption, authentication)
        self.counter = counter ?? [UInt8](repeating: 0, count: cipher.blockLength)
    }

    /// Returns this session, as it goes on after the responses of another.
    func following(_ other: PassportSession) -> PassportSession {
        var session = self
        (session.responses, session.last) = (other.responses, other.last)
        return session
    }

    mutating func count() {
        for index in counter.indices.reversed() {
            counter[index] &+= 1
            if counter[index] != 0 { break }
        }
    }

    func crypt(_ blocks: [UInt8], encrypting: Bool) -> [UInt8]? {
        cipher.crypt(blocks, key: encryptionKey, counter: counter, encrypting: encrypting)
    }

    /// The MAC over counter and whole blocks.
    func mac(_ blocks: [UInt8]) -> [UInt8]? { cipher.mac(counter + blocks, key: authenticationKey) }
}

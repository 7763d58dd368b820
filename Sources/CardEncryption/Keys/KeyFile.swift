import Crypto
import FoundationEssentials

/// A file that keys rest in: of mode 0600, refused if it has another, and wrapped by AES-256-GCM where there is a wrapping
/// key.
///
/// Its first line says what is in it, whether that is wrapped, and which name it has:
/// `card-encryption 2, AES DUKPT state, wrapped with A256GCM, "dukpt"`, or `not wrapped`.  Then follow nonce (12 bytes),
/// ciphertext and tag (16), the line being authenticated with them; or the SHA-256 of line and contents, and the contents.
/// So a file that is copied or renamed is not taken for the one whose name it has got.
///
/// A new version is written beside the old one, under the name with `.new`, forced to the disk and put in its place, so that
/// there is always one or the other.  The old one, whose name ends with `.old` meanwhile, is then overwritten with zeros,
/// which are forced to the disk too, and removed.  `.lock` beside it is empty and stays.
///
/// The folder must be this user's or root's, and nobody else's to write; in one with the sticky bit, such as `/tmp`, others
/// may write.  Whoever could rename what is in it could bring an old state back.  Its file system must know hard links.
public struct KeyFile: Sendable {
    public let path: String
    private let wrapping: WrappingKey?

    /// - Parameter wrapping: see ``WrappingKey/systemdCredential(_:)``; without it, the file's mode is all that protects
    ///   its contents.
    public init(_ path: String, wrappedBy wrapping: WrappingKey? = nil) {
        self.path = path
        self.wrapping = wrapping
    }

    /// What a file may hold.
    enum Kind: String, CaseIterable {
        case aesDUKPT = "AES DUKPT state"
        case tdesDUKPT = "TDES DUKPT state"
        case jwePrivateKey = "JWE private key"
        case deviceKey = "device key"

        /// The first line, up to the name.
        func start(wrapped: Bool) -> [UInt8] {
            Array("card-encryption 2, \(rawValue), \(wrapped ? "wrapped with A256GCM" : "not wrapped"), ".utf8)
        }
    }

    /// No file is longer.
    static let maximumLength = 1 << 16
    /// No first line is longer: no name has more than 255 bytes, none of which takes more than six in JSON.
    static let maximumLineLength = 2048

    /// The last component of its path.
    var name: String { String(path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]) }
    var isWrapping: Bool { wrapping != nil }

    private func line(_ kind: Kind, wrapped: Bool) -> [UInt8] {
        kind.start(wrapped: wrapped) + Array("\(JSON.quoted(name))\n".utf8)
    }

    // MARK: Reading

    /// The first line of a file of this kind and this name.
    ///
    /// - Parameter file: its bytes, those of the line at least.
    /// - Throws: ``KeyFileError`` if it is of another kind or name, or none.
    func line(of file: UnsafeRawBufferPointer, kind: Kind) throws(KeyFileError) -> (line: [UInt8], isWrapped: Bool) {
        for wrapped in [true, false] {
            let line = line(kind, wrapped: wrapped)
            if file.starts(with: line) { return (line, wrapped) }
        }
        throw KeyFileError(Self.otherness(of: file, than: kind), path)
    }

    private static func otherness(of file: UnsafeRawBufferPointer, than kind: Kind) -> KeyFileError.Reason {
        for (other, wrapped) in Kind.allCases.flatMap({ [($0, true), ($0, false)] }) {
            let start = other.start(wrapped: wrapped)
            guard file.starts(with: start) else { continue }
            guard other == kind else { return .kind(other.rawValue) }
            let rest = file.prefix(maximumLineLength).dropFirst(start.count)
            guard let end = rest.firstIndex(of: UInt8(ascii: "\n")), let name = try? JSON(rest[..<end]).text else {
                return .foreign
            }
            return .name(name.string)
        }
        return file.starts(with: "card-encryption 1, ".utf8) ? .older : .foreign
    }

    /// The contents of a file, and whether they were wrapped.
    func contents(
        of file: UnsafeRawBufferPointer, kind: Kind
    ) throws(KeyFileError) -> (contents: WipedStorage, isWrapped: Bool) {
        let (line, isWrapped) = try line(of: file, kind: kind)
        let body = UnsafeRawBufferPointer(rebasing: file[line.count...])
        return (isWrapped ? try opened(body, line: line) : try checked(body, line: line), isWrapped)
    }

    private func opened(_ body: UnsafeRawBufferPointer, line: [UInt8]) throws(KeyFileError) -> WipedStorage {
        guard let wrapping else { throw KeyFileError(.wrapped, path) }
        guard let box = try? AES.GCM.SealedBox(combined: body),
            var clear = try? wrapping.withKey({ try AES.GCM.open(box, using: $0, authenticating: line) })
        else { throw KeyFileError(.notAuthentic, path) }
        return WipedStorage(moving: &clear)
    }

    private func checked(_ body: UnsafeRawBufferPointer, line: [UInt8]) throws(KeyFileError) -> WipedStorage {
        guard body.count >= SHA256.byteCount,
            body.prefix(SHA256.byteCount).elementsEqual(Self.digest(body.dropFirst(SHA256.byteCount), line: line))
        else { throw KeyFileError(.notAuthentic, path) }
        return WipedStorage(UnsafeRawBufferPointer(rebasing: body.dropFirst(SHA256.byteCount)))
    }

    private static func digest(_ contents: Slice<UnsafeRawBufferPointer>, line: [UInt8]) -> SHA256.Digest {
        var hash = SHA256()
        hash.update(data: line)
        hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: contents))
        return hash.finalize()
    }

    // MARK: Writing

    /// A file of contents.
    func file(of contents: UnsafeRawBufferPointer, kind: Kind) throws(KeyFileError) -> WipedStorage {
        let line = line(kind, wrapped: wrapping != nil)
        let file: WipedStorage
        if let wrapping {
            guard
                let body = try? wrapping.withKey({ try AES.GCM.seal(contents, using: $0, authenticating: line) })
                    .combined
            else { throw KeyFileError(.malformed, path) }
            file = WipedStorage(count: line.count + body.count)
            file.bytes[line.count...].copyBytes(from: body)
        } else {
            let digest = Self.digest(contents[...], line: line)
            file = WipedStorage(count: line.count + SHA256.byteCount + contents.count)
            file.bytes[line.count...].copyBytes(from: Array(digest))
            file.bytes[(line.count + SHA256.byteCount)...].copyBytes(from: contents)
        }
        file.bytes.copyBytes(from: line)
        guard file.bytes.count <= Self.maximumLength else { throw KeyFileError(.tooLong(file.bytes.count), path) }
        return file
    }
}

extension KeyFile: CustomStringConvertible, CustomReflectable {
    /// The path.
    public var description: String { path }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

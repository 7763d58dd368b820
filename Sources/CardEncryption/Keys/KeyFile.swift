import Crypto
import FoundationEssentials

/// A file for keys at rest.  It must have mode 0600, and is wrapped by AES-256-GCM if there is a wrapping key.
///
/// The first line names the contents, the wrapping and the file name: `card-encryption 2, AES DUKPT state, wrapped
/// with A256GCM, "dukpt"`, or `not wrapped`.  After it come nonce (12 bytes), ciphertext and tag (16), which also
/// authenticates the line; or the SHA-256 of line and contents, and the contents.  A copied or renamed file therefore
/// does not pass for another one.
///
/// A new version is written to a separate file, the name with `.new`, flushed to the disk and moved into place, so
/// that there is always one version or the other.  The old version, named `.old` in the meantime, is then overwritten
/// with zeros, which are flushed, too, and removed.  `.lock` is an empty file that stays.
///
/// The folder must belong to this user or to root, and nobody else may write to it; in a folder with the sticky bit,
/// such as `/tmp`, others may.  A user who could rename its files could restore an old state.  The file system must
/// support hard links.
public struct KeyFile: Sendable {
    public let path: String
    private let wrapping: WrappingKey?

    /// Creates a reference to a file.
    ///
    /// - Parameters:
    ///   - path: the path of the file, which need not exist yet.
    ///   - wrapping: see ``WrappingKey/systemdCredential(_:)``; without it, only the file's mode protects the contents.
    public init(_ path: String, wrappedBy wrapping: WrappingKey? = nil) {
        self.path = path
        self.wrapping = wrapping
    }

    /// The kind of contents.
    enum Kind: String, CaseIterable {
        case aesDUKPT = "AES DUKPT state"
        case tdesDUKPT = "TDES DUKPT state"
        case jwePrivateKey = "JWE private key"
        case deviceKey = "device key"
        case merchantKey = "merchant key"

        /// Returns the first line, up to the name.
        func start(wrapped: Bool) -> [UInt8] {
            Array("card-encryption 2, \(rawValue), \(wrapped ? "wrapped with A256GCM" : "not wrapped"), ".utf8)
        }
    }

    /// The maximum length of a file.
    static let maximumLength = 1 << 16
    /// The maximum length of a first line: a name has at most 255 bytes, each of which takes at most six in JSON.
    static let maximumLineLength = 2048

    /// The last component of the path.
    var name: String { String(path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]) }
    var isWrapping: Bool { wrapping != nil }

    private func line(_ kind: Kind, wrapped: Bool) -> [UInt8] {
        kind.start(wrapped: wrapped) + Array("\(JSON.quoted(name))\n".utf8)
    }

    // MARK: Reading

    /// Returns the first line of a file with this kind and this name.
    ///
    /// - Parameter file: the file's bytes, at least those of the line.
    /// - Throws: ``KeyFileError`` if the file has another kind or name, or is not a key file.
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

    /// Returns the contents of a file, and whether they were wrapped.
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

    /// Returns the file for contents.
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
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

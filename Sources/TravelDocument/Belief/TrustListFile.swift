public import Foundation

extension TrustList {
    /// The form of the file, in JSON.
    private struct File: Codable {
        struct Entry: Codable {
            enum Kind: String, Codable {
                case authority, signer, revocationList
            }

            let kind: Kind
            let origin: Origin
            let bytes: Data
        }

        var version = 1
        let entries: [Entry]
    }

    /// The longest file that is read or imported.
    static let maximumFileLength = 1 << 27

    /// Reads a list that ``write(to:)`` wrote.
    ///
    /// - Throws: ``MalformedObject`` for an entry that is none, and the errors of Foundation.
    public init(contentsOf file: URL) throws {
        self.init()
        let data = try Data(contentsOf: file)
        guard data.count <= Self.maximumFileLength else {
            throw MalformedObject(due: "a trust list of at most 128 MiB", offset: 0)
        }
        let contents = try JSONDecoder().decode(File.self, from: data)
        guard contents.version == 1 else { throw MalformedObject(due: "a trust list of version 1", offset: 0) }
        for entry in contents.entries {
            let bytes = Array(entry.bytes)
            let object: Entry.Object =
                switch entry.kind {
                case .authority: .authority(try Certificate(bytes))
                case .signer: .signer(try Certificate(bytes))
                case .revocationList: .revocationList(try RevocationList(bytes))
                }
            add(object, entry.origin)
        }
    }

    /// Writes the list, whole or not at all.  Nothing in it is secret; whoever can change the file decides what is
    /// believed.
    ///
    /// - Throws: ``MalformedObject`` for a list that ``init(contentsOf:)`` would not read; the errors of Foundation.
    public func write(to file: URL) throws {
        let entries = entries.map { entry in
            let (kind, bytes): (File.Entry.Kind, [UInt8]) =
                switch entry.object {
                case .authority(let certificate): (.authority, certificate.encoded)
                case .signer(let certificate): (.signer, certificate.encoded)
                case .revocationList(let list): (.revocationList, list.encoded)
                }
            return File.Entry(kind: kind, origin: entry.origin, bytes: Data(bytes))
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let data = try encoder.encode(File(entries: entries))
        guard data.count <= Self.maximumFileLength else {
            throw MalformedObject(due: "a trust list of at most 128 MiB", offset: 0)
        }
        try data.write(to: file, options: .atomic)
    }
}

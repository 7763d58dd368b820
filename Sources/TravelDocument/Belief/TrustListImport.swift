public import Foundation

extension TrustList {
    /// The result of an import.
    public struct Import: Hashable, Sendable {
        public fileprivate(set) var authorities = 0
        public fileprivate(set) var signers = 0
        public fileprivate(set) var revocationLists = 0
        /// Objects that were there already.
        public fileprivate(set) var known = 0
        /// Objects that are not what they should be, which were left out.
        public fileprivate(set) var faults: [MalformedObject] = []
        /// The master lists in the file.
        public fileprivate(set) var masterLists: [MasterListImport] = []

        fileprivate mutating func count(_ object: Entry.Object, isNew: Bool) {
            guard isNew else { return known += 1 }
            switch object {
            case .authority: authorities += 1
            case .signer: signers += 1
            case .revocationList: revocationLists += 1
            }
        }
    }

    /// A master list of an import.
    public struct MasterListImport: Hashable, Sendable {
        /// False if its signature did not hold; nothing of it was added then.
        public let isAdded: Bool
        /// The findings of its signature.
        public let findings: [Finding]
    }

    /// Adds what a file contains: a certificate or a revocation list (DER or PEM), a master list (ICAO 9303-12, 8), or
    /// an LDIF file of the ICAO Public Key Directory.
    ///
    /// A certificate of an authority is believed for being added.  A master list is added if its signature holds.
    ///
    /// - Parameters:
    ///   - file: the contents of the file.
    ///   - source: where the file comes from.
    ///   - date: today.
    /// - Returns: what was added, and what was not.
    /// - Throws: ``MalformedObject`` if the file is none of these.
    @discardableResult public mutating func add(
        _ file: [UInt8], source: String, at date: Date
    ) throws(MalformedObject) -> Import {
        guard file.count <= Self.maximumFileLength else {
            throw MalformedObject(due: "a file of at most 128 MiB", offset: 0)
        }
        var result = Import()
        let origin = Origin(source: source, date: date)
        if file.first == ASN1.Tag.sequence {
            try add(object: file, origin, &result)
        } else if let blocks = PEM.blocks(file) {
            for block in blocks { add(part: block, .any, origin, &result) }
        } else {
            for (kind, value) in try LDIF.objects(file) { add(part: value, kind, origin, &result) }
        }
        return result
    }

    /// The contents of an attribute or a block.
    enum PartKind: Hashable, Sendable {
        case authority, signer, revocationList, masterList, any
    }

    private mutating func add(part: [UInt8], _ kind: PartKind, _ origin: Origin, _ result: inout Import) {
        do throws(MalformedObject) {
            switch kind {
            case .authority: insert(.authority(try Certificate(part)), origin, &result)
            case .signer: insert(.signer(try Certificate(part)), origin, &result)
            case .revocationList: insert(.revocationList(try RevocationList(part)), origin, &result)
            case .masterList: add(masterList: try MasterList(part), origin, &result)
            case .any: try add(object: part, origin, &result)
            }
        } catch {
            result.faults.append(error)
        }
    }

    /// Adds an object of which its form tells what it is.
    private mutating func add(object: [UInt8], _ origin: Origin, _ result: inout Import) throws(MalformedObject) {
        // A ContentInfo begins with its type, whatever its length is; the others begin with what is signed.
        let start = object.dropFirst().first.map { $0 > 0x80 ? 2 + Int($0 & 0x7F) : 2 } ?? 2
        if object.dropFirst(start).first == ASN1.Tag.objectIdentifier {
            return add(masterList: try MasterList(object), origin, &result)
        }
        do throws(MalformedObject) {
            let certificate = try Certificate(object)
            let isAuthority = certificate.extensions.isAuthority ?? certificate.isSelfSigned
            insert(isAuthority ? .authority(certificate) : .signer(certificate), origin, &result)
        } catch let fault {
            guard let list = try? RevocationList(object) else { throw fault }
            insert(.revocationList(list), origin, &result)
        }
    }

    private mutating func add(masterList: MasterList, _ origin: Origin, _ result: inout Import) {
        let findings = masterList.verify(trust: self, at: origin.date)
        let held = Set(findings.filter { !$0.isOpen }.map(\.check))
        let isAdded = !findings.contains(where: \.isFailure) && MasterList.essential.isSubset(of: held)
        result.masterLists.append(MasterListImport(isAdded: isAdded, findings: findings))
        result.faults += masterList.faults
        guard isAdded else { return }
        for certificate in masterList.certificates { insert(.authority(certificate), origin, &result) }
    }

    private mutating func insert(_ object: Entry.Object, _ origin: Origin, _ result: inout Import) {
        result.count(object, isNew: add(object, origin))
    }
}

/// Base64 between lines of dashes (RFC 7468).
enum PEM {
    /// - Returns: nil if there is no such line.
    static func blocks(_ file: [UInt8]) -> [[UInt8]]? {
        let text = String(decoding: file, as: UTF8.self)
        guard text.contains("-----BEGIN ") else { return nil }
        var blocks: [[UInt8]] = []
        var block: String?
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("-----BEGIN ") {
                block = ""
            } else if line.hasPrefix("-----END ") {
                blocks.append(Array(Data(base64Encoded: block ?? "") ?? Data()))
                block = nil
            } else {
                block?.append(contentsOf: line.filter { !$0.isWhitespace })
            }
        }
        return blocks
    }
}

/// Entries of a directory (RFC 2849).
enum LDIF {
    /// The attributes of the ICAO Public Key Directory, in small letters, without the option `binary`.
    private static let kinds: [String: TrustList.PartKind] = [
        "cacertificate": .authority,
        "cscacertificate": .authority,
        "usercertificate": .signer,
        "certificaterevocationlist": .revocationList,
        "pkdmasterlistcontent": .masterList,
    ]

    /// Returns the objects of a file, in order.
    ///
    /// - Throws: ``MalformedObject`` with the offset of a line that is not of LDIF.
    static func objects(_ file: [UInt8]) throws(MalformedObject) -> [(kind: TrustList.PartKind, value: [UInt8])] {
        var objects: [(kind: TrustList.PartKind, value: [UInt8])] = []
        var hasEntry = false
        for (offset, line) in logicalLines(file) where !line.isEmpty && line.first != UInt8(ascii: "#") {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
                throw MalformedObject(due: "an attribute and its value", offset: offset)
            }
            hasEntry = true
            let name = String(decoding: line[..<colon].prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self).lowercased()
            guard let kind = kinds[name] else { continue }
            let rest = line[(colon + 1)...]
            guard rest.first == UInt8(ascii: ":"),
                let value = Data(base64Encoded: Data(rest.dropFirst().filter { $0 != UInt8(ascii: " ") }))
            else { throw MalformedObject(due: "a value in Base64", offset: offset) }
            objects.append((kind, Array(value)))
        }
        guard hasEntry else { throw MalformedObject(due: "a certificate, a list or LDIF", offset: 0) }
        return objects
    }

    /// Joins folded lines: one that begins with a blank continues the line before it (RFC 2849, note 2).
    private static func logicalLines(_ file: [UInt8]) -> [(offset: Int, line: [UInt8])] {
        var lines: [(offset: Int, line: [UInt8])] = []
        for raw in file.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            let line = raw.last == UInt8(ascii: "\r") ? raw.dropLast() : raw
            if line.first == UInt8(ascii: " "), !lines.isEmpty {
                lines[lines.count - 1].line += line.dropFirst()
            } else {
                lines.append((raw.startIndex, Array(line)))
            }
        }
        return lines
    }
}

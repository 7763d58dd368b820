package import Foundation
import ToolSupport
package import TravelDocument

/// The trust list of this user, a file.
package struct TrustStore {
    package let file: URL

    /// Under XDG_DATA_HOME, else in ~/.local/share (XDG Base Directory Specification).
    package static var user: TrustStore {
        let home = FileManager.default.homeDirectoryForCurrentUser.appending(path: ".local/share")
        let data = ProcessInfo.processInfo.environment["XDG_DATA_HOME"].flatMap {
            $0.hasPrefix("/") ? URL(filePath: $0) : nil
        }
        return TrustStore(file: (data ?? home).appending(path: "reader-probe/trust.json"))
    }

    /// Returns the list; an empty one if there is no file.
    package func read() throws -> TrustList {
        guard FileManager.default.fileExists(atPath: file.path) else { return TrustList() }
        do { return try TrustList(contentsOf: file) } catch {
            throw ToolError.usage(
                "\(file.path) is no trust list that can be read", "Remove the file, and import the authorities again.")
        }
    }

    package func write(_ list: TrustList) throws {
        do {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try list.write(to: file)
        } catch {
            throw ToolError.usage("\(file.path) cannot be written", "Check that its folder is yours, and has room.")
        }
    }
}

/// A file with authorities.
package struct TrustFile {
    package let path: String
    /// The name under which the list has what comes from it.
    package var source: String { URL(filePath: path).lastPathComponent }

    /// Returns the file, or all files of the folder.
    package static func all(in path: String) throws -> [TrustFile] {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            return [TrustFile(path: path)]
        }
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            throw ToolError.usage("\(path) cannot be read", hint)
        }
        return names.sorted().map { TrustFile(path: path + "/" + $0) }.filter { file in
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder) && !isFolder.boolValue
        }
    }

    private static let hint = "Give certificates, a master list or LDIF."

    /// The reasons why a file is not imported.
    package struct Refusal: Error {
        package let reasons: [String]
    }

    /// Puts the file in the place of its earlier edition.
    ///
    /// - Throws: ``Refusal``; the list is then as it was.
    package func renew(in list: inout TrustList) throws -> TrustList.Import {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Refusal(reasons: ["it cannot be read"])
        }
        let isKnown = list.entries.contains { $0.origin.source == source }
        // A new edition is held against what is trusted so far, the old edition included.
        var both = list
        let judged: TrustList.Import
        do { judged = try both.add(Array(data), source: source, at: .now) } catch {
            throw Refusal(reasons: ["\(error)"])
        }
        let findings = judged.masterLists.flatMap(\.findings)
        guard judged.masterLists.allSatisfy(\.isAdded) else {
            throw Refusal(reasons: findings.filter { $0.outcome != .passed }.map { "master list: \($0)" })
        }
        if isKnown, findings.contains(where: { $0.check == .path && $0.isFlagged }) {
            throw Refusal(reasons: [
                "nobody who is trusted signed this edition; remove the earlier one first, if you mean to trust it"
            ])
        }
        guard judged.authorities + judged.signers + judged.revocationLists + judged.known > 0 else {
            throw Refusal(reasons: ["it contains no certificate and no list"] + judged.faults.map { "left out: \($0)" })
        }
        var renewed = list
        renewed.remove(source: source)
        let result = try renewed.add(Array(data), source: source, at: .now)
        guard result.masterLists.allSatisfy(\.isAdded) else {
            throw Refusal(reasons: ["only its earlier edition vouches for it; import its authority first"])
        }
        list = renewed
        return result
    }

    @discardableResult package func add(to list: inout TrustList) throws -> TrustList.Import {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ToolError.usage("\(path) cannot be read", Self.hint)
        }
        do throws(MalformedObject) { return try list.add(Array(data), source: source, at: .now) } catch {
            throw ToolError.usage("\(path): \(error)", Self.hint)
        }
    }
}

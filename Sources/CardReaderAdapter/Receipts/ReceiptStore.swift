public import Foundation
import SmartCard

/// Receipts in a folder, a file for each order, so that one can be printed again.
public struct ReceiptStore: Sendable {
    public let folder: URL

    /// - Parameter folder: made with the first receipt, for its owner alone.
    public init(folder: URL) { self.folder = folder }

    /// Keeps the receipt of `order`, in the place of one that is there, for the folder's owner alone to read.  A crash leaves
    /// the old one or the new one.
    ///
    /// - Throws: ``ReceiptStoreError``; `CocoaError` where the folder cannot be written to.
    public func save(_ content: ReceiptContent, order: String) throws {
        let file = try file(order)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let data = try encoder.encode(content)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try PrivateFile.replace(file, with: data)
    }

    /// - Throws: ``ReceiptStoreError/noReceipt(order:)`` where none was saved, ``ReceiptStoreError/corrupt(order:reason:)`` where
    ///   what is there is no receipt; `CocoaError` where it cannot be read.
    public func load(order: String) throws -> ReceiptContent {
        let data: Data
        do {
            data = try Data(contentsOf: file(order))
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            throw ReceiptStoreError.noReceipt(order: order)
        }
        do {
            return try JSONDecoder().decode(ReceiptContent.self, from: data)
        } catch {
            throw ReceiptStoreError.corrupt(
                order: order, reason: (error as? ReceiptError)?.description ?? "\(type(of: error))")
        }
    }

    /// Letters and digits stay; of everything else its bytes in hexadecimal, so that no order leads out of the folder and no two
    /// share a file.
    private func file(_ order: String) throws(ReceiptStoreError) -> URL {
        let name = order.utf8.map { byte in
            Self.plain.contains(byte)
                ? String(Unicode.Scalar(byte)) : "%" + [byte].hex
        }.joined()
        guard !name.isEmpty, name.utf8.count <= 240 else { throw .unusableOrder(order) }
        return folder.appending(path: name + ".json", directoryHint: .notDirectory)
    }

    private static let plain = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-".utf8)
}

public enum ReceiptStoreError: Error, Hashable, Sendable {
    case noReceipt(order: String)
    case corrupt(order: String, reason: String)
    /// It is empty, or too long for the name of a file.
    case unusableOrder(String)
}

extension ReceiptStoreError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .noReceipt(let order): "there is no receipt of order \(order)"
        case .corrupt(let order, let reason): "the receipt of order \(order) cannot be read: \(reason)"
        case .unusableOrder(let order): "“\(order)” cannot name a receipt"
        }
    }

    /// One sentence for a person: what to do next.
    public var hint: String {
        switch self {
        case .noReceipt: "Check the order's number and the folder."
        case .corrupt: "Make the receipt again from the transaction, and save it."
        case .unusableOrder: "Name the order by 1 to 240 letters and digits."
        }
    }
}

public import Foundation
import SmartCard

/// A folder of receipts, with one file for each order, for printing them again.
public struct ReceiptStore: Sendable {
    public let folder: URL

    /// Creates a store.
    ///
    /// - Parameter folder: created with the first receipt, accessible only to its owner.
    public init(folder: URL) { self.folder = folder }

    /// Saves the receipt of `order`, and replaces an earlier one.
    ///
    /// Only the owner of the folder can read the file.  A crash leaves the old receipt or the new one.
    ///
    /// - Throws: ``ReceiptStoreError``; `CocoaError` if the folder cannot be written to.
    public func save(_ content: ReceiptContent, order: String) throws {
        let file = try file(order)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let data = try encoder.encode(content)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try PrivateFile.replace(file, with: data)
    }

    /// Loads the receipt of `order`.
    ///
    /// - Throws: ``ReceiptStoreError/noReceipt(order:)`` if none was saved,
    ///   ``ReceiptStoreError/corrupt(order:reason:)`` if the file is not a receipt; `CocoaError` if it cannot be read.
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

    /// Returns the file of an order.  Letters and digits stay, other bytes become hexadecimal: no order leads out of
    /// the folder, and no two orders share a file.
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
    /// The order's identifier is empty, or too long for the name of a file.
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

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch self {
        case .noReceipt: "Check the order's number and the folder."
        case .corrupt: "Make the receipt again from the transaction, and save it."
        case .unusableOrder: "Name the order by 1 to 240 letters and digits."
        }
    }
}

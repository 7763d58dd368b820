public import SmartCard
import SmartCardPN532

extension CardConnection {
    /// Reads the NDEF message of the tag: of a Type 2 Tag if the reader calls the card a storage card (PC/SC part 3,
    /// 3.1.3.2.3), else of a Type 4 Tag.  A tag without a message has one without records.
    ///
    /// - Throws: ``NoNDEFTag`` for a card that is no such tag; `NDEFError` for a malformed message; `CardError`.
    public func readNDEF() async throws -> NDEFMessage {
        do {
            if case .storageCard? = atr.contactless { return try await Type2Tag(self).readNDEF() }
            return try await Type4Tag(self).readNDEF()
        } catch let error as TagError {
            throw NoNDEFTag(description: error.description)
        }
    }
}

/// A card that is no NDEF tag of a known type, or whose NDEF data is malformed.
public struct NoNDEFTag: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String
}

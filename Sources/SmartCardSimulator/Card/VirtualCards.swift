/// The cards that come with the library, each a card file in the folder `Cards`.
public enum VirtualCards {
    /// A card that comes with the library.
    public struct BuiltIn: Sendable {
        /// `visa`, `mifare-classic-1k`
        public let name: String
        /// The text of its card file, to be read as an example or changed into another card.
        public let text: String

        /// What the card is, in one line.
        public var summary: String { (try? CardFile(parsing: text))?.summary ?? name }
    }

    /// All of them, in the order in which a list shows them.
    public static var all: [BuiltIn] {
        table.map { BuiltIn(name: $0.0, text: String(decoding: $0.1, as: UTF8.self)) }
    }

    /// A fresh card by its name.
    ///
    /// - Returns: nil if no card has that name.
    public static func named(_ name: String) -> (any VirtualCard)? {
        guard let entry = table.first(where: { $0.0 == name }) else { return nil }
        return try? CardFile(parsing: entry.1).makeCard()
    }

    private static var table: [(String, [UInt8])] {
        [
            ("visa", PackageResources.visa_card),
            ("visa-offline", PackageResources.visa_offline_card),
            ("mastercard", PackageResources.mastercard_card),
            ("two-applications", PackageResources.two_applications_card),
            ("blocked", PackageResources.blocked_card),
            ("mifare-classic-1k", PackageResources.mifare_classic_1k_card),
            ("ntag213", PackageResources.ntag213_card),
            ("ndef-type4", PackageResources.ndef_type4_card),
            ("felica", PackageResources.felica_card),
            ("iso-dep", PackageResources.iso_dep_card),
            ("type-b", PackageResources.type_b_card),
        ]
    }
}

import SmartCard

/// The networks that a card number's first digits belong to.
enum CardNetworkDetection {
    /// Returns the networks, those with the longest matching prefix first.  A number that is longer than a network's
    /// numbers is not that network's.
    ///
    /// - Parameter digits: ASCII digits, perhaps only the first ones.
    static func networks(of digits: some Collection<UInt8>) -> [CardNetwork] {
        issuers(of: digits).filter { digits.count <= $0.numberLengths.max() ?? 0 }
    }

    /// Returns the networks that have the first digits, whatever the length.
    static func issuers(of digits: some Collection<UInt8>) -> [CardNetwork] {
        let values = digits.lazy.map { $0 - UInt8(ascii: "0") }
        return IssuerNetwork.all.enumerated().compactMap { index, network in
            network.specificity(values).map { (network.id, $0, index) }
        }
        .sorted { ($1.1, $0.2) < ($0.1, $1.2) }
        .map { CardNetwork(rawValue: $0.0) }
    }
}

extension CardNetworkDetection {
    /// The networks that the customer may choose from, and the one that is chosen.
    struct Choice: Hashable, Sendable {
        var available: [CardNetwork] = []
        /// The customer's choice; else the first that is accepted; else the first of the number.
        var network: CardNetwork?
    }

    /// Returns the networks of a number among those that are accepted.  A card of several networks leaves the choice to the
    /// customer (Regulation (EU) 2015/751, Article 8(6)).
    ///
    /// - Parameters:
    ///   - accepted: the networks that are accepted; nil: all.
    ///   - chosen: the customer's choice; nil: none.
    static func choice(
        of digits: some Collection<UInt8>, accepted: [CardNetwork]?, chosen: CardNetwork?
    ) -> Choice {
        let candidates = networks(of: digits)
        let available = accepted.map { candidates.filter($0.contains) } ?? candidates
        let isOffered = chosen.map(available.contains) ?? false
        return Choice(available: available, network: isOffered ? chosen : available.first ?? candidates.first)
    }
}

/// A zone that may be the printed one, where a camera misread it.
///
/// It is a proposal: have somebody compare it with the document before you use it.
public struct ZoneProposal: Hashable, Sendable {
    public let zone: MachineReadableZone
    /// The positions of the characters that differ from what was read, counted over all lines from zero.
    public let changes: [Int]
}

extension ZoneProposal: PersonalData {
    /// The number of changes.
    public var description: String { "proposal with \(changes.count) changes" }
}

extension MachineReadableZone {
    /// The characters of which cameras take one for the other.
    private static let confusions = ["0ODQ", "1IL", "2Z", "5S", "6G", "8B"].map { Array($0.utf8) }
    /// The most changes besides those that a field of digits or letters demands.
    private static let mostChanges = 2
    /// The most proposals.
    private static let mostProposals = 8

    /// Returns the zones whose check digits are right and that look like what was read, those with the fewest changes first.
    ///
    /// The zone as it was read is not among them.  Check digits do not tell 6 from G and 1 from L (ICAO 9303-3, 4.9: their
    /// values differ by 10 and 20), so that a zone without a wrong one may have proposals, too: for a chip that it does
    /// not open.
    ///
    /// - Parameter lines: as for ``init(_:)``.
    /// - Returns: at most eight; none for a number of characters that matches no format.
    public static func proposals(for lines: some StringProtocol) -> [ZoneProposal] {
        let read = Array(String(lines.filter { !$0.isWhitespace }).uppercased().utf8)
        guard let format = Format.allCases.first(where: { $0.lineCount * $0.lineLength == read.count }) else {
            return []
        }
        let layout = Layout.of(format)
        let demanded = layout.withDemandedKinds(read, confusions)
        var found: [ZoneProposal] = []
        func propose(_ characters: [UInt8]) {
            guard characters != read, let zone = try? MachineReadableZone(String(decoding: characters, as: UTF8.self))
            else { return }
            found.append(ZoneProposal(zone: zone, changes: read.indices.filter { characters[$0] != read[$0] }))
        }
        propose(demanded)
        for count in 1...mostChanges {
            guard found.count < mostProposals else { break }
            change(demanded, layout.freePositions, count, propose)
        }
        return Array(found.sorted { $0.changes.count < $1.changes.count }.prefix(mostProposals))
    }

    /// Calls `body` with all variants in which so many characters are others that they may be taken for.
    private static func change(
        _ characters: [UInt8], _ positions: some Collection<Int>, _ count: Int, _ body: (_ variant: [UInt8]) -> Void
    ) {
        guard count > 0 else { return body(characters) }
        var rest = Array(positions)[...]
        while let position = rest.popFirst() {
            let character = characters[position]
            for other in confusions.first(where: { $0.contains(character) }) ?? [] where other != character {
                var variant = characters
                variant[position] = other
                change(variant, rest, count - 1, body)
            }
        }
    }
}

extension MachineReadableZone.Layout {
    /// The positions where both digits and letters may stand.
    fileprivate var freePositions: [Int] {
        [documentNumber, optionalData, secondOptionalData ?? 0..<0].flatMap { Array($0) }
    }

    /// Replaces letters where digits must stand, and digits where letters must, by what they may be taken for.
    fileprivate func withDemandedKinds(_ characters: [UInt8], _ confusions: [[UInt8]]) -> [UInt8] {
        // The check digit of a field is the character after it.
        let digits =
            [dateOfBirth, dateOfExpiry].flatMap { Array($0.lowerBound...$0.upperBound) }
            + [documentNumber.upperBound, personalNumber?.upperBound, compositeDigit].compactMap(\.self)
        let letters = [0..<1, Self.issuingState, nationality, name].flatMap { Array($0) }
        var result = characters
        // In each set, the digit stands first, and the letter that is most like it second.
        for (positions, index) in [(digits, 0), (letters, 1)] {
            for position in positions {
                guard let set = confusions.first(where: { $0.contains(characters[position]) }) else { continue }
                if index == 0 || characters[position] == set[0] { result[position] = set[index] }
            }
        }
        return result
    }
}

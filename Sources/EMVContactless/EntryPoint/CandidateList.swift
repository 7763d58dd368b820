import SmartCard

/// An application of the card that a combination of the reader supports (EMV Contactless Book B, 3.3.2.5).
public struct Candidate: Hashable, Sendable {
    public let combination: Combination
    /// The name for SELECT: the ADF name, with the extended selection if that is appended (3.3.3.3).
    public let name: [UInt8]
    /// Tag 87 of the directory entry.
    public let priority: ApplicationPriority
}

extension Candidate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The reader's AID, and `*` for each digit that the card appended, which may be anything.
    public var description: String {
        let known = combination.aid.bytes
        return known.hex + String(repeating: "*", count: 2 * max(0, name.count - known.count))
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// The combinations that card and reader have in common, in the order in which to try them.
public struct CandidateList: Hashable, Sendable {
    private var candidates: [Candidate] = []
    /// True if the card has more applications than ``EntryPoint/maximumCandidates``; the last ones are left out.
    public private(set) var isCut = false

    init() {}

    /// Creates the list from at most ``EntryPoint/maximumCandidates`` entries and candidates.
    ///
    /// - Parameters:
    ///   - directory: the FCI of the PPSE.
    ///   - combinations: the allowed combinations of the reader.
    ///   - preferred: the applications that precede all others, whatever the card prefers, in descending order.
    init(_ directory: TLVList, _ combinations: some Sequence<Combination>, preferring preferred: [AID] = []) {
        // 3.3.2.4: 61 in BF0C in A5 in 6F.
        guard let entries = directory[0x6F]?.children[0xA5]?.children[0xBF0C]?.children else { return }
        // By order in the PPSE, and within one entry by the order of the reader's combinations, any one of which is
        // permitted (3.3.3.2).
        var count = 0
        read: for entry in entries where entry.tag == 0x61 {
            count += 1
            guard count <= EntryPoint.maximumCandidates else {
                isCut = true
                break
            }
            // 3.3.2.5 A
            guard let name = entry.children[0x4F].flatMap({ AID($0.value) }) else { continue }
            for combination in combinations {
                guard let candidate = Candidate(combination, name, entry.children) else { continue }
                guard candidates.count < EntryPoint.maximumCandidates else {
                    isCut = true
                    break read
                }
                candidates.append(candidate)
            }
        }
        // The sorts are stable.
        candidates.sort { $0.priority < $1.priority }
        for aid in preferred.reversed() {
            candidates =
                candidates.filter { $0.name.starts(with: aid.bytes) }
                + candidates.filter { !$0.name.starts(with: aid.bytes) }
        }
    }

    /// The number of candidates that were passed over: selected without success, or ended by their kernels with Select Next.
    public private(set) var passedOver = 0

    /// The candidate to try now (3.3.3.1, 3.3.3.2); nil if none is left.
    public var next: Candidate? { dropFirst(passedOver).first }

    mutating func passOver() { passedOver = Swift.min(passedOver + 1, count) }
}

/// All candidates, in order, whether they were passed over or not.
extension CandidateList: RandomAccessCollection {
    public var startIndex: Int { candidates.startIndex }
    public var endIndex: Int { candidates.endIndex }
    public subscript(position: Int) -> Candidate { candidates[position] }
}

extension Candidate {
    /// Creates a candidate.
    ///
    /// - Returns: nil unless `combination` supports the application of the directory entry.
    fileprivate init?(_ combination: Combination, _ name: AID, _ entry: TLVList) {
        // B
        guard name.matches(prefix: combination.aid) else { return nil }
        // C: the default comes from the matching AID.
        guard let kernel = KernelIdentifier.requested(by: entry[0x9F2A]?.value, aid: combination.aid) else {
            return nil
        }
        // D
        guard kernel == .any || kernel == combination.kernel else { return nil }
        // E
        self.combination = combination
        priority = ApplicationPriority(entry[0x87]?.value)
        // 3.3.3.3; a name has at most 16 bytes (EMV Book 1, 11.3.2).
        let extended = combination.extendedSelection == true ? entry[0x9F29].map { name.bytes + $0.value } : nil
        self.name = extended.flatMap { $0.count <= 16 ? $0 : nil } ?? name.bytes
    }
}

/// The contents of a chip as far as the caller wanted them, and the chip's proofs of being the original.
///
/// ``TravelDocumentChip/read(dataGroups:with:allowingDowngrade:tell:)`` makes one.  Nothing in it is believed until
/// ``belief(trust:revocationLists:at:)`` says so.  It is personal data; it prints as the names of its files.
public struct DocumentReading: Sendable {
    /// A file that was not read, or that was read and is not as its standard has it.
    public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        public enum Reason: Hashable, Sendable {
            case notRead(FileError)
            case needsTerminalAuthentication
            case malformedContents(TravelDocumentFormatError)
            case malformedObject(MalformedObject)
        }

        public let file: ElementaryFile
        public let reason: Reason

        public var description: String {
            switch reason {
            case .notRead(let error): "\(file): \(error)"
            case .needsTerminalAuthentication: "\(ChipError.needsTerminalAuthentication(file))"
            case .malformedContents(let error): "\(file): \(error)"
            case .malformedObject(let error): "\(file): \(error)"
            }
        }
    }

    public let access: ChipAccess
    /// The files that were read, complete with tag and length, in the order of reading.
    public internal(set) var files: [(file: ElementaryFile, bytes: [UInt8])] = []
    /// The files with details, parsed.
    public internal(set) var contents: [ElementaryFile: ParsedFile] = [:]
    public internal(set) var failures: [Failure] = []
    /// EF.SOD; nil for a document without one.
    public internal(set) var securityObject: SecurityObject?
    /// The verdict of Chip Authentication; nil if the chip was not asked.
    public internal(set) var chipAuthentication: ChipAuthentication.Verdict?
    /// The verdict of Active Authentication; nil if the chip was not asked.
    public internal(set) var activeAuthentication: ActiveAuthentication.Verdict?

    init(_ access: ChipAccess) { self.access = access }

    /// The data groups that the document has: those that EF.SOD signs, else those that EF.COM lists.
    public var dataGroups: [Int] {
        if let securityObject { return securityObject.dataGroupDigests.keys.sorted() }
        guard case .commonDataElements(let elements)? = contents[.com] else { return [] }
        return elements.dataGroups.compactMap { if case .dataGroup(let number) = $0 { number } else { nil } }
    }

    /// DG1.
    public var zone: MachineReadableZone? {
        if case .machineReadableZone(let zone)? = contents[.dataGroup(1)] { zone } else { nil }
    }

    /// Returns the bytes of a file that was read.
    public func bytes(of file: ElementaryFile) -> [UInt8]? { files.first { $0.file == file }?.bytes }
}

extension DocumentReading: PersonalData {
    /// The names of the files that were read.
    public var description: String { "travel document: \(files.map { "\($0.file)" }.joined(separator: " "))" }
}

/// A step of a reading, for whoever shows its progress.
public enum ReadingEvent: Sendable {
    /// The chip is open.
    case opened(ChipAccess)
    /// Some bytes of a file are there.
    case progress(ElementaryFile, ReadingProgress)
    /// A file was read; its contents, if it has details.
    case read(ElementaryFile, ParsedFile?)
    case failed(DocumentReading.Failure)
}

extension TravelDocumentChip {
    /// Opens the chip and reads what is wanted, and nothing else: EF.SOD, DG1, the proof of being the original, the other
    /// data groups, and those with pictures last.
    ///
    /// - Parameters:
    ///   - dataGroups: the numbers of those that are wanted.  One that the document does not have is not asked for.
    ///     DG14 and DG15 are read with or without being named, where the chip has a key there.
    ///   - key: the key that opens the chip.
    ///   - allowsDowngrade: true to open the chip by Basic Access Control if it offers PACE and every variant fails.
    ///   - tell: is called after each step.  DG1 can be used as soon as it is told.
    /// - Throws: ``AccessError``; ``SecureMessagingError``; ``ChipError``; `CardError`, after which
    ///   ``resume(over:connection:)`` saves what was read of the interrupted file; those before it were told.
    public func read(
        dataGroups: Set<Int>, with key: AccessKey, allowingDowngrade allowsDowngrade: Bool = false,
        tell: @Sendable (_ event: ReadingEvent) -> Void = { _ in }
    ) async throws -> DocumentReading {
        var reading = DocumentReading(try await open(with: key, allowingDowngrade: allowsDowngrade))
        tell(.opened(reading.access))
        try await read(.sod, into: &reading, tell)
        // EF.COM is not signed, and tells nothing more.
        if reading.securityObject == nil { try await read(.com, into: &reading, tell) }
        let there = Set(reading.dataGroups)
        if dataGroups.contains(1) { try await read(.dataGroup(1), into: &reading, tell) }
        try await proveOriginality(there, &reading, tell)
        // The session ended with a chip that does not have its key.
        guard reading.chipAuthentication != .notGenuine else { return reading }
        let isDone = Set(reading.files.map(\.file) + reading.failures.map(\.file))
        let pictures = [5, 7, 2]
        let others = dataGroups.intersection(there).subtracting(pictures).subtracting([1]).sorted()
        for number in others + pictures.filter(dataGroups.intersection(there).contains) {
            let file = ElementaryFile.dataGroup(number)
            if !isDone.contains(file) { try await read(file, into: &reading, tell) }
        }
        return reading
    }

    /// One proof is enough: after chip authentication or its mapping there is nothing left for active authentication to
    /// show.  DG14 is read in any case, because it is signed and says what EF.CardAccess had to offer.
    private func proveOriginality(
        _ there: Set<Int>, _ reading: inout DocumentReading, _ tell: @Sendable (ReadingEvent) -> Void
    ) async throws {
        let isProven = reading.access.mappingVerdict == .genuine
        if there.contains(14) { try await read(.dataGroup(14), into: &reading, tell) }
        let infos = reading.bytes(of: .dataGroup(14))
        if let infos, !isProven {
            do { reading.chipAuthentication = try await authenticateChip(securityInfos: infos) } catch let error
                as MalformedObject
            {
                fail(.dataGroup(14), .malformedObject(error), &reading, tell)
            }
        }
        guard !isProven, ![.genuine, .notGenuine].contains(reading.chipAuthentication), there.contains(15) else {
            return
        }
        try await read(.dataGroup(15), into: &reading, tell)
        guard let key = reading.bytes(of: .dataGroup(15)) else { return }
        let isUsable = !reading.failures.contains { $0.file == .dataGroup(14) }
        do {
            reading.activeAuthentication = try await authenticateActively(
                publicKey: key, securityInfos: isUsable ? infos : nil)
        } catch let error as MalformedObject {
            fail(.dataGroup(15), .malformedObject(error), &reading, tell)
        }
    }

    private func read(
        _ file: ElementaryFile, into reading: inout DocumentReading, _ tell: @Sendable (ReadingEvent) -> Void
    ) async throws {
        let bytes: [UInt8]
        do { bytes = try await read(file) { progress in tell(.progress(file, progress)) } } catch let error as FileError
        {
            return fail(file, .notRead(error), &reading, tell)
        } catch ChipError.needsTerminalAuthentication {
            return fail(file, .needsTerminalAuthentication, &reading, tell)
        }
        reading.files.append((file, bytes))
        do {
            if file == .sod { reading.securityObject = try SecurityObject(bytes) }
            reading.contents[file] = try ParsedFile(parsing: bytes, of: file)
            tell(.read(file, reading.contents[file]))
        } catch let error as TravelDocumentFormatError {
            fail(file, .malformedContents(error), &reading, tell)
        } catch let error as MalformedObject {
            fail(file, .malformedObject(error), &reading, tell)
        }
    }

    private func fail(
        _ file: ElementaryFile, _ reason: DocumentReading.Failure.Reason, _ reading: inout DocumentReading,
        _ tell: @Sendable (ReadingEvent) -> Void
    ) {
        // What is wrong with a file is told once, by whoever finds it first.
        guard !reading.failures.contains(where: { $0.file == file }) else { return }
        let failure = DocumentReading.Failure(file: file, reason: reason)
        reading.failures.append(failure)
        tell(.failed(failure))
    }
}

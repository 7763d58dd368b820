public import SmartCard

/// The chip of a passport or an identity card, over a channel to it.
///
///     let chip = TravelDocumentChip(over: Stack(for: reader).over(card), connection: card)
///     let access = try await chip.open(with: AccessKey(try MachineReadableZone(lines)))
///     let file = try await chip.read(.dataGroup(1))
///
/// Use it from one task at a time.  It blocks no thread: each exchange waits for the channel.
public actor TravelDocumentChip {
    /// A session of secure messaging.
    private struct Session {
        let channel: any CardChannel
        /// The most data bytes of a response, in the clear.
        let chunk: Int
        /// The same for a short command.
        let shortChunk: Int
    }

    private var channel: any CardChannel
    private var connection: (any CardConnection)?
    private let longestAPDU: Int
    private let random: any RandomSource
    /// The session; nil before ``open(with:allowingDowngrade:)``.
    private var session: Session?
    /// The most bytes of a response in this session, without its status word.
    private var longestResponse = ATRInfo.shortResponse
    private var key: AccessKey?
    /// The files whose reading ended with a lost card.
    private var interrupted: [ElementaryFile: FileReader] = [:]

    /// - Parameters:
    ///   - channel: with layers that fetch the rest of a response (61xx).
    ///   - connection: resets the chip after a failed variant of access control, which leaves it in a state that ICAO 9303
    ///     does not say; nil: the next variant is tried as it is.
    ///   - longestAPDU: the longest command or response in bytes that the reader passes on, as `Model.longestCommand` tells
    ///     it; nil: the chip alone limits it.  Extended lengths are used only beyond 261.
    public init(over channel: any CardChannel, connection: (any CardConnection)? = nil, longestAPDU: Int? = 261) {
        self.init(over: channel, connection: connection, longestAPDU: longestAPDU, random: SystemRandomSource())
    }

    init(
        over channel: any CardChannel, connection: (any CardConnection)?, longestAPDU: Int? = 261,
        random: any RandomSource
    ) {
        (self.channel, self.connection, self.random) = (channel, connection, random)
        self.longestAPDU = longestAPDU ?? .max
    }

    /// Goes on with another connection to the same document, after its chip was lost and put back.
    ///
    /// Open the chip again.  With the same key, a file whose reading was interrupted is then read from where it stopped.
    public func resume(over channel: any CardChannel, connection: (any CardConnection)? = nil) {
        (self.channel, self.connection, session) = (channel, connection, nil)
    }

    // MARK: Access

    /// Opens the chip: by the best variant of PACE that it offers, and by Basic Access Control where it offers none.
    ///
    /// - Parameters:
    ///   - key: what is printed on the document, or known to its holder.
    ///   - allowsDowngrade: true to try Basic Access Control, too, where all variants of PACE fail.  Whoever listens to it
    ///     can guess the key; the result says so.
    /// - Throws: ``AccessError`` if no variant opens the chip; `CardError` of the channel.
    @discardableResult public func open(
        with key: AccessKey, allowingDowngrade allowsDowngrade: Bool = false
    ) async throws -> ChipAccess {
        session = nil
        if key != self.key { (self.key, interrupted) = (key, [:]) }
        longestResponse = try await readATRInfo()?.mostData(inResponseWithin: longestAPDU) ?? ATRInfo.shortResponse
        var failures: [AccessError.Failure] = []
        let infos = try await readCardAccess()?.paceInfos ?? []
        for info in infos {
            let isAmbiguous = infos.count { $0.identifier == info.identifier } > 1
            guard let pace = PACE(info, key, namesParameters: isAmbiguous, random: random) else {
                failures.append(.init(method: .pace(info), refusal: .unsupported))
                continue
            }
            let (ended, refusal) = try await run(pace)
            if let refusal {
                failures.append(.init(method: .pace(info), refusal: refusal))
                // The key is wrong for every variant, and there may be few tries.
                if case .wrongKey = refusal { throw AccessError(failures: failures) }
                try await connection?.reset()
            } else {
                let mapping = ended.chipAuthentication
                let cardSecurity = mapping == nil ? nil : try await readCardSecurity()
                try await selectApplication()
                return ChipAccess(
                    method: .pace(info), failures: failures, isDowngraded: false, chipAuthenticationMapping: mapping,
                    cardSecurity: cardSecurity, offered: infos)
            }
        }
        guard infos.isEmpty || allowsDowngrade else { throw AccessError(failures: failures) }
        var random = random
        guard let basic = BasicAccessControl(key, random: &random) else {
            throw AccessError(
                failures: failures + [.init(method: .basicAccessControl, refusal: .needsMachineReadableZone)])
        }
        try await selectApplication()
        if let refusal = try await run(basic).refusal {
            throw AccessError(failures: failures + [.init(method: .basicAccessControl, refusal: refusal)])
        }
        return ChipAccess(
            method: .basicAccessControl, failures: failures, isDowngraded: !infos.isEmpty,
            chipAuthenticationMapping: nil, cardSecurity: nil, offered: infos)
    }

    /// Runs a protocol to its end, and begins the session.
    ///
    /// - Returns: the protocol at its end, and the refusal; nil after success.
    private func run<Access: AccessProtocol>(_ access: Access) async throws -> (ended: Access, refusal: AccessRefusal?)
    {
        var access = access
        var step = access.next(nil)
        while true {
            switch step {
            case .send(let command):
                guard command.bytes.count <= longestAPDU else { return (access, .readerLimit) }
                step = access.next(try await channel.transmit(command))
            case .refused(let refusal):
                guard let first = access.startAgain() else { return (access, refusal) }
                try await connection?.reset()
                step = first
            case .established(let messaging):
                begin(messaging)
                return (access, nil)
            }
        }
    }

    private func begin(_ messaging: SecureMessaging) {
        // A wrong Le is repeated within the session, with the next counter.
        session = Session(
            channel: WrongLeLayer(SecureChannel(channel, messaging, longestCommand: longestAPDU)),
            chunk: messaging.mostData(inResponseOf: longestResponse),
            shortChunk: messaging.mostData(inResponseOf: ATRInfo.shortResponse))
    }

    // MARK: The master file

    /// EF.ATR/INFO, which tells how long APDUs may be, as far as a short response carries it; nil if it is not as it should
    /// be.  A reader of short APDUs does not ask.
    private func readATRInfo() async throws -> ATRInfo? {
        guard longestAPDU > 261 else { return nil }
        let response = try await channel.transmit(ATRInfo.command)
        guard response.status == .success || response.status == 0x6282 else { return nil }
        return try? ATRInfo(parsing: response.data)
    }

    /// EF.CardAccess, which a chip without PACE does not have.
    ///
    /// A chip that does not give it at once is asked to select the master file first, in both forms.
    private func readCardAccess() async throws -> SecurityInfos? {
        do {
            return SecurityInfos(
                try await read(FileReader(.cardAccess, chunk: ATRInfo.shortResponse), over: channel))
        } catch is FileError {
            guard try await selectMasterFile(over: channel) else { return nil }
        }
        let reader = FileReader(.cardAccess, chunk: ATRInfo.shortResponse, usesShortIdentifier: false)
        do { return SecurityInfos(try await read(reader, over: channel)) } catch is FileError { return nil }
    }

    /// EF.CardSecurity, where PACE leaves the master file selected.
    private func readCardSecurity() async throws -> [UInt8]? {
        guard let session else { return nil }
        do {
            return try await read(
                FileReader(.cardSecurity, chunk: session.chunk, shortChunk: session.shortChunk), over: session.channel)
        } catch is FileError { return nil }
    }

    /// SELECT of the master file, without data and with its identifier: chips know the one, the other, or both
    /// (ISO/IEC 7816-4, 11.2.2).
    private func selectMasterFile(over channel: any CardChannel) async throws -> Bool {
        for identifier in [[], [0x3F, 0x00]] as [[UInt8]] {
            let command = CommandAPDU(unchecked: (0x00, 0xA4, 0x00, 0x0C), data: identifier)
            if try await channel.transmit(command).status == .success { return true }
        }
        return false
    }

    /// SELECT of the application by its name (ICAO 9303-10, 3.5.1), without Le.
    private func selectApplication() async throws {
        let command = CommandAPDU(
            unchecked: (0x00, 0xA4, 0x04, 0x0C), data: [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01])
        let response = try await (session?.channel ?? channel).transmit(command)
        guard response.status == .success else {
            // A session beside the application opens none of its files.
            session = nil
            throw ChipError.notATravelDocument(response.status)
        }
    }

    // MARK: Authenticity

    /// Asks the chip to prove that it has the private key of DG15.
    ///
    /// - Parameters:
    ///   - publicKey: DG15.  Check with ``PassiveAuthentication`` that it is signed.
    ///   - securityInfos: DG14, where the chip has one.
    /// - Throws: ``MalformedObject``; ``SecureMessagingError``; ``ChipError``; `CardError`.
    public func authenticateActively(
        publicKey: [UInt8], securityInfos: [UInt8]? = nil
    ) async throws -> ActiveAuthentication.Verdict {
        guard let session else { throw ChipError.notOpen }
        var random = random
        var active = try ActiveAuthentication(
            publicKey: publicKey, securityInfos: securityInfos, longestResponse: session.chunk, random: &random)
        var step = active.next(nil)
        while true {
            switch step {
            case .send(let command): step = active.next(try await session.channel.transmit(command))
            case .finished(let verdict): return verdict
            }
        }
    }

    /// Agrees on new keys with the chip's key in DG14, and has the chip prove that it has them.
    ///
    /// - Parameter securityInfos: DG14.  Check with ``PassiveAuthentication`` that it is signed.
    /// - Throws: ``MalformedObject``; ``SecureMessagingError`` of the old session; ``ChipError``; `CardError`.
    public func authenticateChip(securityInfos: [UInt8]) async throws -> ChipAuthentication.Verdict {
        guard let session else { throw ChipError.notOpen }
        let infos = try SecurityInfos(dataGroup14: securityInfos)
        guard var authentication = ChipAuthentication(infos, random: random) else {
            return infos.hasChipAuthenticationKey ? .unusableKey : .notOffered
        }
        var step = authentication.next(nil)
        while true {
            switch step {
            case .send(let command):
                do {
                    step = authentication.next(try await session.channel.transmit(command))
                } catch SecureMessagingError.tooLong { return .readerLimit }
            case .refused(let refusal): return .refused(refusal)
            case .established(let messaging):
                begin(messaging)
                // Whatever the chip says of the file, it says it with the new keys.
                do { _ = try await read(.com) } catch is FileError {
                } catch is SecureMessagingError { return .notGenuine }
                return .genuine
            }
        }
    }

    // MARK: Files

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - file: any but DG3 and DG4, which are for readers with a certificate of the issuing state.
    ///   - progress: called after each response, with the bytes that are there and those that there will be; of EF.ATR/INFO,
    ///     which does not tell its length, never.
    /// - Returns: the data object that the file contains, or the objects of EF.ATR/INFO.  Nobody has checked it against the
    ///   signature yet.
    /// - Throws: ``FileError``; ``SecureMessagingError``, with which the session is over; ``ChipError``; `CardError`.
    ///   After the last one, see ``resume(over:connection:)``.
    public func read(
        _ file: ElementaryFile, progress: @Sendable (_ progress: ReadingProgress) -> Void = { _ in }
    ) async throws -> [UInt8] {
        if case .dataGroup(let number) = file, ElementaryFile.group(number) == nil { throw FileError.absent }
        guard file != .dataGroup(3), file != .dataGroup(4) else { throw ChipError.needsTerminalAuthentication(file) }
        guard let session else { throw ChipError.notOpen }
        guard file.isInMasterFile else {
            let reader = FileReader(
                file, chunk: session.chunk, shortChunk: session.shortChunk, resuming: interrupted[file])
            return try await read(reader, over: session.channel, progress: progress)
        }
        guard try await selectMasterFile(over: session.channel) else { throw FileError.absent }
        let result: Result<[UInt8], FileError>
        do {
            let reader = FileReader(
                file, chunk: session.chunk, shortChunk: session.shortChunk, usesShortIdentifier: false)
            result = .success(try await read(reader, over: session.channel, progress: progress))
        } catch let error as FileError { result = .failure(error) }
        try await selectApplication()
        return try result.get()
    }

    private func read(
        _ reader: FileReader, over channel: any CardChannel,
        progress: (_ progress: ReadingProgress) -> Void = { _ in }
    ) async throws -> [UInt8] {
        var reader = reader
        var step = reader.next(nil)
        while true {
            switch step {
            case .send(let command):
                do { step = reader.next(try await channel.transmit(command)) } catch {
                    if error is CardError, reader.length != nil { interrupted[reader.file] = reader }
                    throw error
                }
                if let length = reader.length {
                    progress(ReadingProgress(bytes: min(reader.bytes.count, length), length: length))
                }
            case .done(let bytes):
                interrupted[reader.file] = nil
                return bytes
            case .failed(let error):
                interrupted[reader.file] = nil
                throw error
            }
        }
    }
}

/// The bytes of a file that have been read.
public struct ReadingProgress: Hashable, Sendable {
    public let bytes: Int
    /// All bytes of the file, as it declares them.
    public let length: Int
}

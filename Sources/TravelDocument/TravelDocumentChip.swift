public import SmartCard

/// The chip of a passport or an identity card, over a channel to it.
///
///     let chip = TravelDocumentChip(over: Stack(for: reader).over(card), connection: card)
///     let access = try await chip.open(with: AccessKey(try MachineReadableZone(lines)))
///     let file = try await chip.read(.dataGroup(1))
///
/// Use it from one task at a time.  It blocks no thread: each exchange waits for the channel.
public actor TravelDocumentChip {
    /// The data bytes of a short response.
    static let shortResponse = 256

    private let channel: any CardChannel
    private let connection: (any CardConnection)?
    private let random: any RandomSource
    /// The channel of the session; nil before ``open(with:allowingDowngrade:)``.
    private var session: (channel: any CardChannel, chunk: Int)?

    /// - Parameters:
    ///   - channel: with layers that fetch the rest of a response (61xx).
    ///   - connection: resets the chip after a failed variant of access control, which leaves it in a state that ICAO 9303
    ///     does not say; nil: the next variant is tried as it is.
    public init(over channel: any CardChannel, connection: (any CardConnection)? = nil) {
        self.init(over: channel, connection: connection, random: SystemRandomSource())
    }

    init(over channel: any CardChannel, connection: (any CardConnection)?, random: any RandomSource) {
        (self.channel, self.connection, self.random) = (channel, connection, random)
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
        var failures: [AccessError.Failure] = []
        let infos = try await readCardAccess()?.paceInfos ?? []
        for info in infos {
            let isAmbiguous = infos.count { $0.identifier == info.identifier } > 1
            guard let pace = PACE(info, key, namesParameters: isAmbiguous, random: random) else {
                failures.append(.init(method: .pace(info), refusal: .unsupported))
                continue
            }
            if let failure = try await run(pace, .pace(info)) {
                failures.append(failure)
                // The key is wrong for every variant, and there may be few tries.
                if case .wrongKey = failure.refusal { throw AccessError(failures: failures) }
                try await connection?.reset()
            } else {
                try await selectApplication()
                return ChipAccess(method: .pace(info), failures: failures, isDowngraded: false)
            }
        }
        guard infos.isEmpty || allowsDowngrade else { throw AccessError(failures: failures) }
        var random = random
        guard let basic = BasicAccessControl(key, random: &random) else {
            throw AccessError(
                failures: failures + [.init(method: .basicAccessControl, refusal: .needsMachineReadableZone)])
        }
        try await selectApplication()
        if let failure = try await run(basic, .basicAccessControl) { throw AccessError(failures: failures + [failure]) }
        return ChipAccess(method: .basicAccessControl, failures: failures, isDowngraded: !infos.isEmpty)
    }

    /// Runs a protocol to its end, and begins the session.
    ///
    /// - Returns: the failure; nil after success.
    private func run(
        _ access: some AccessProtocol, _ method: ChipAccess.Method
    ) async throws -> AccessError.Failure? {
        var access = access
        var step = access.next(nil)
        while true {
            switch step {
            case .send(let command): step = access.next(try await channel.transmit(command))
            case .refused(let refusal):
                guard let first = access.startAgain() else { return .init(method: method, refusal: refusal) }
                try await connection?.reset()
                step = first
            case .established(let messaging):
                begin(messaging)
                return nil
            }
        }
    }

    private func begin(_ messaging: SecureMessaging) {
        // A wrong Le is repeated within the session, with the next counter.
        session = (
            WrongLeLayer(SecureChannel(channel, messaging)), messaging.mostData(inResponseOf: Self.shortResponse)
        )
    }

    /// EF.CardAccess, which a chip without PACE does not have.
    private func readCardAccess() async throws -> SecurityInfos? {
        do {
            return SecurityInfos(try await read(.cardAccess, over: channel, chunk: Self.shortResponse) { _ in })
        } catch is FileError {
            return nil
        }
    }

    /// SELECT of the application by its name (ICAO 9303-10, 3.5.1), without Le.
    private func selectApplication() async throws {
        let command = CommandAPDU(
            unchecked: (0x00, 0xA4, 0x04, 0x0C), data: [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01])
        let response = try await (session?.channel ?? channel).transmit(command)
        guard response.status == .success else { throw ChipError.notATravelDocument(response.status) }
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
        guard var authentication = ChipAuthentication(try SecurityInfos(dataGroup14: securityInfos), random: random)
        else { return .notOffered }
        var step = authentication.next(nil)
        while true {
            switch step {
            case .send(let command): step = authentication.next(try await session.channel.transmit(command))
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
    ///   - progress: called after each response, with the bytes that are there and those that there will be.
    /// - Returns: the data object that the file contains.  Nobody has checked it against the signature yet.
    /// - Throws: ``FileError``; ``SecureMessagingError``, with which the session is over; ``ChipError``; `CardError`.
    public func read(
        _ file: ElementaryFile, progress: @Sendable (_ progress: ReadingProgress) -> Void = { _ in }
    ) async throws -> [UInt8] {
        guard file != .dataGroup(3), file != .dataGroup(4) else { throw ChipError.needsTerminalAuthentication(file) }
        guard let session else { throw ChipError.notOpen }
        return try await read(file, over: session.channel, chunk: session.chunk, progress: progress)
    }

    private func read(
        _ file: ElementaryFile, over channel: any CardChannel, chunk: Int,
        progress: (_ progress: ReadingProgress) -> Void
    ) async throws -> [UInt8] {
        var reader = FileReader(file, chunk: chunk)
        var step = reader.next(nil)
        while true {
            switch step {
            case .send(let command):
                step = reader.next(try await channel.transmit(command))
                if let length = reader.length {
                    progress(ReadingProgress(bytes: min(reader.bytes.count, length), length: length))
                }
            case .done(let bytes): return bytes
            case .failed(let error): throw error
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

/// The way in which a chip was opened.
public struct ChipAccess: Hashable, Sendable {
    /// A protocol of access control.
    public enum Method: Hashable, Sendable, CustomStringConvertible {
        case basicAccessControl
        /// PACE in a variant that the chip offered.
        case pace(PACEInfo)

        public var description: String {
            switch self {
            case .basicAccessControl: "BAC"
            case .pace(let info): "PACE-\(info)"
            }
        }
    }

    public let method: Method
    /// The variants that failed before.
    public let failures: [AccessError.Failure]
    /// True if the chip offers PACE and was opened by Basic Access Control.
    public let isDowngraded: Bool
}

/// A chip that no protocol opened.
public struct AccessError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A variant, and why it failed.
    public struct Failure: Hashable, Sendable {
        public let method: ChipAccess.Method
        public let refusal: AccessRefusal
    }

    /// In the order in which they were tried.
    public let failures: [Failure]

    public var description: String {
        failures.map { "\($0.method): \($0.refusal)" }.joined(separator: "; ")
    }
}

/// A chip that cannot be used as asked.
public enum ChipError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The chip does not have the application of travel documents.
    case notATravelDocument(StatusWord)
    /// Nobody has opened the chip.
    case notOpen
    /// The file contains fingerprints or irises, and opens with the issuing state's certificate only.
    case needsTerminalAuthentication(ElementaryFile)

    public var description: String {
        switch self {
        case .notATravelDocument(let status): "the chip is not that of a travel document: \(status)"
        case .notOpen: "the chip is not open. Open it with an access key first."
        case .needsTerminalAuthentication(let file):
            "\(file) opens for readers with a certificate of the issuing state only (terminal authentication)"
        }
    }
}

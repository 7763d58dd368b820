import EMVContactless
package import Foundation
package import SmartCard
import Waiting

/// The device behind every ``PaymentCardReader`` of a process: one reader, one session, one read at a time.
package actor PaymentTerminal {
    package static let shared = PaymentTerminal(ProximityReaderSystem.use())

    nonisolated let events = Multicast<TerminalEvent>()
    /// What the kernels show the people at the reader.
    nonisolated let messages = Multicast<UserInterfaceRequest>(keeping: .newest(64))
    /// Of this run of the program.
    nonisolated let runIdentifier = UUID().uuidString
    let configuration: ProximityReaderSystem.ValidatedConfiguration
    package nonisolated let store: RecordStore
    /// Where records are kept.
    package nonisolated var folder: URL { configuration.folder }
    let accounts: AccountRecords

    var isPreparing = false
    var session: TerminalSession?
    /// Tells when the session's time is over.
    var expiry: Task<Void, Never>?
    /// The session whose end has been told.
    weak var toldEnd: TerminalSession?

    /// The reader, for as long as it is there.
    var attached: AttachedReader?
    /// Finds it, whoever asks for it meanwhile.
    var finding: Task<AttachedReader, any Error>?
    /// Looks for the reader while it is gone.
    var search: Task<Void, Never>?
    var sleepWatch: Task<Void, Never>?
    var isAsleep = false

    /// Those that are under way, or whose card has not been taken away.
    var reads: [UUID: RunningRead] = [:]
    /// The one that is under way.
    var reading: UUID?
    /// The last read, until its card has been taken away.
    var lastRead: Task<Void, Never>?
    /// Whether the card of the last read has not been taken away.
    var isCardLeft = false
    /// Waits for that.
    var removal: Task<Void, Never>?
    /// Transactions that cards may have to recover, in whichever read they come back.
    let tornTransactions = TornTransactions()
    /// Tag 9F41 of the last transaction.  It begins with the time, so that it goes on when the program is started again.
    var sequenceCounter: UInt32

    /// - Parameter store: that of another terminal with this folder, which both have then; nil: one of its own.
    package init(_ configuration: ProximityReaderSystem.ValidatedConfiguration, store: RecordStore? = nil) {
        self.configuration = configuration
        accounts = AccountRecords(folder: configuration.folder)
        self.store =
            store
            ?? RecordStore(
                folder: configuration.folder, wrapping: configuration.storeWrappingKey, now: configuration.now)
        let seconds = configuration.now().timeIntervalSince1970
        sequenceCounter = UInt32(exactly: seconds.rounded().truncatingRemainder(dividingBy: 99_999_999)) ?? 0
    }

    deinit {
        for task in [expiry, search, sleepWatch, lastRead] { task?.cancel() }
    }

    // MARK: Accounts

    func isAccountLinked(using token: PaymentCardReader.Token) async throws -> Bool {
        try await isLinked(ReaderToken(token, for: configuration))
    }

    func linkAccount(using token: PaymentCardReader.Token, again: Bool) async throws {
        let token = try await ReaderToken(token, for: configuration)
        if !again, try await isLinked(token) { throw PaymentCardReaderError.accountAlreadyLinked }
        try await accounts.link(
            token.merchant, of: token.issuer, terms: configuration.termsVersion, at: configuration.now())
    }

    func isLinked(_ token: ReaderToken) async throws -> Bool {
        try await accounts.isLinked(token.merchant, of: token.issuer, terms: configuration.termsVersion)
    }

    // MARK: Reader

    /// The applications that it has a kernel for.
    package nonisolated var applications: [AID] {
        configuration.terminal.combinations.filter { Kernels.all[$0.kernel] != nil }.map(\.aid)
    }

    func readerIdentifier() async throws -> String {
        let number: String?
        do {
            number = try await attachedReader().identity.serialNumber
        } catch let error as CardError {
            throw PaymentCardReaderError(error)
        }
        if let number { return number }
        return try await accounts.machineIdentifier()
    }
}

extension Task {
    /// Waits until it has ended, or the task that waits is cancelled.
    func ended() async {
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        Task<Void, Never> {
            _ = await self.result
            continuation.finish()
        }
        for await _ in end {}
    }
}

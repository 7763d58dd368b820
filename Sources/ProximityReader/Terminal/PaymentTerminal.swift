import ContactlessMetrics
import EMVContactless
package import Foundation
package import SmartCard
import Waiting

/// The device behind every ``PaymentCardReader`` of a process: one reader, one session, one read at a time.
package actor PaymentTerminal {
    package static let shared = PaymentTerminal(ProximityReaderSystem.use())

    nonisolated let events = Multicast<TerminalEvent>()
    /// The kernels' messages for the people at the reader.
    nonisolated let messages = Multicast<UserInterfaceRequest>(keeping: .newest(64))
    /// True while the terminal has its reader; nothing before it has looked for one.
    nonisolated let presence = Multicast<Bool>(keeping: .newest(1)) { isPresent in { isPresent } }
    /// An identifier of this run of the program.
    nonisolated let runIdentifier = UUID().uuidString
    let configuration: ProximityReaderSystem.ValidatedConfiguration
    package nonisolated let store: RecordStore
    /// The folder of the records.
    package nonisolated var folder: URL { configuration.folder }
    let accounts: AccountRecords

    var isPreparing = false
    var session: TerminalSession?
    /// The task that reports the end of the session's time.
    var expiry: Task<Void, Never>?
    /// The session whose end has been reported.
    weak var toldEnd: TerminalSession?

    /// The reader, while it is present.
    var attached: AttachedReader? {
        didSet {
            tellPresence()
            if attached == nil { searchReader() }
        }
    }
    /// The task that finds the reader, shared by all callers.
    var finding: Task<AttachedReader, any Error>?
    /// The task that searches for the reader while it is gone.
    var search: Task<Void, Never>?
    var sleepWatch: Task<Void, Never>?
    var isAsleep = false

    /// The reads that are under way, or whose card has not been removed.
    var reads: [UUID: RunningRead] = [:]
    /// The read that is under way.
    var reading: UUID?
    /// The last read, until its card has been removed.
    var lastRead: Task<Void, Never>?
    /// True if the card of the last read has not been removed.
    var isCardLeft = false
    /// The task that waits for the card's removal.
    var removal: Task<Void, Never>?
    /// The memory of the kernels, such as torn transactions that cards may recover in a later read.
    let memory = TerminalMemory()
    /// The passes that were seen.
    var passMemory: PassMemory
    /// The last Transaction Sequence Counter, tag 9F41.  It starts from the time, so that it continues after a restart
    /// of the program.
    var sequenceCounter: UInt32

    /// Creates a terminal.
    ///
    /// - Parameter store: the store of another terminal with this folder, to share; nil creates one.
    package init(_ configuration: ProximityReaderSystem.ValidatedConfiguration, store: RecordStore? = nil) {
        self.configuration = configuration
        accounts = AccountRecords(folder: configuration.folder)
        passMemory = PassMemory(configuration)
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

    /// The applications for which the terminal has a kernel.
    package nonisolated var applications: [AID] {
        let terminal = configuration.terminal
        return terminal.combinations.filter { terminal.kernels.contains($0.kernel) }.map(\.aid)
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
    /// Waits until the read has ended, or the waiting task is canceled.
    func ended() async {
        let (end, continuation) = AsyncStream.makeStream(of: Void.self)
        Task<Void, Never> {
            _ = await self.result
            continuation.finish()
        }
        for await _ in end {}
    }
}

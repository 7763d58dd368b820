// The only file that calls libpcsclite.  It releases all handles, turns statuses into thrown errors, and bounds the
// results.  Everything here blocks; callers use a dedicated thread.
//
// Two properties of the library (read in 1.9.9, Debian 12):
// - A thread that enters a context in use waits with the lock of the whole library held, and blocks all other contexts.
//   Therefore one thread uses each context, and only SCardCancel comes from another.
// - Some functions retry every 100 ms internally while another connection holds the card.  PCSCLITE_NO_BLOCKING, which
//   the first SCardEstablishContext reads, turns that off for all but SCardBeginTransaction.

import CSmartCardPCSC
import Glibc
import SmartCard
import Synchronization
import Waiting

/// A context: one socket to pcscd.  Released with the value.
struct SCardContext: ~Copyable {
    fileprivate let raw: SCARDCONTEXT

    init() throws(PCSCStatus) {
        var raw = SCARDCONTEXT()
        let status = Self.withoutBlocking {
            ProcessExit.guarded { SCardEstablishContext(DWORD(SCARD_SCOPE_SYSTEM), nil, nil, &raw) }
        }
        try check(status)
        self.raw = raw
    }

    deinit { _ = ProcessExit.guarded { SCardReleaseContext(raw) } }

    /// Runs `establish` with PCSCLITE_NO_BLOCKING set until it has succeeded once, and then unsets it so that child
    /// processes keep libpcsclite's default behavior.
    private static func withoutBlocking(_ establish: () -> LONG) -> LONG {
        let first = environment.withLock { isSettled -> LONG? in
            guard !isSettled else { return nil }
            let status = withVariable("PCSCLITE_NO_BLOCKING", establish)
            isSettled = PCSCStatus(status) == .success
            return status
        }
        return first ?? establish()
    }

    private static let environment = Mutex(false)

    /// Returns the names of the readers in pcscd's order, possibly none.
    func readers() throws(PCSCStatus) -> [String] {
        while true {
            var length = DWORD()
            var status = ProcessExit.guarded { SCardListReaders(raw, nil, nil, &length) }
            if PCSCStatus(status) == .noReadersAvailable { return [] }
            try check(status)
            var names = [CChar](repeating: 0, count: Int(length) + 1)
            status = ProcessExit.guarded { SCardListReaders(raw, nil, &names, &length) }
            if PCSCStatus(status) == .noReadersAvailable { return [] }
            if PCSCStatus(status) == .insufficientBuffer { continue }
            try check(status)
            return names.prefix(Int(length)).split(separator: 0).map {
                String(decoding: $0.map(UInt8.init(bitPattern:)), as: UTF8.self)
            }
        }
    }

    /// Returns the current state of `readers`.
    func snapshot(of readers: [String]) throws(PCSCStatus) -> [ReaderSnapshot] {
        var states = readers.map { ReaderSnapshot(name: $0) }
        if !states.isEmpty { _ = try getStatusChange(&states, timeout: 0) }
        return states
    }

    /// Waits until the state of a reader differs from `known`, or a reader comes or goes.
    ///
    /// - Parameter plugAndPlay: the counter of reader arrivals and departures, as the previous wait returned it.
    /// - Throws: `cancelled` after ``canceller`` was used; `unknownReader` if one of the readers is gone.
    func waitForChange(from known: [ReaderSnapshot], plugAndPlay: inout UInt16) throws(PCSCStatus) {
        var states = known
        states.append(ReaderSnapshot(name: Self.plugAndPlay, flags: 0, eventCount: plugAndPlay, atr: []))
        do throws(PCSCStatus) {
            try getStatusChange(&states, timeout: DWORD(INFINITE))
            plugAndPlay = states.last?.eventCount ?? 0
        } catch .invalidParameter where known.count >= Int(PCSCLITE_MAX_READERS_CONTEXTS) {
            // pcsc-lite before 2.5 supports 16 readers and as many entries here, so no other can arrive.
            states.removeLast()
            try getStatusChange(&states, timeout: DWORD(INFINITE))
        }
    }

    /// PC/SC part 5, 3.2.5 does not define it; Windows and pcsc-lite share it.
    private static let plugAndPlay = #"\\?PnP?\Notification"#

    private func getStatusChange(_ states: inout [ReaderSnapshot], timeout: DWORD) throws(PCSCStatus) {
        let names = states.map { strdup($0.name) }
        defer { for name in names { free(name) } }
        var entries = zip(states, names).map { state, name in
            var entry = SCARD_READERSTATE()
            entry.szReader = UnsafePointer(name)
            entry.dwCurrentState = DWORD(state.flags) | DWORD(state.eventCount) << 16
            return entry
        }
        let canceller = canceller
        let status = ProcessExit.guarded(cancelledBy: { canceller.cancel() }) {
            SCardGetStatusChange(raw, timeout, &entries, DWORD(entries.count))
        }
        // With a timeout of zero, this means that nothing has changed.
        if timeout == 0, PCSCStatus(status) == .timeout { return }
        try check(status)
        for (index, entry) in entries.enumerated() {
            let count = min(Int(entry.cbAtr), Int(MAX_ATR_SIZE))
            let atr = withUnsafeBytes(of: entry.rgbAtr) { Array($0.prefix(count)) }
            states[index].flags = UInt32(truncatingIfNeeded: entry.dwEventState & 0xFFFF) & ~UInt32(SCARD_STATE_CHANGED)
            states[index].eventCount = UInt16(truncatingIfNeeded: entry.dwEventState >> 16)
            states[index].atr = entry.dwEventState & DWORD(SCARD_STATE_PRESENT) != 0 ? atr : []
        }
    }

    /// Ends a wait in this context from another thread.
    var canceller: SCardCanceller { SCardCanceller(raw: raw) }
}

/// Runs `body` with the variable `name` set to 1, unless it is set already.
///
/// Other threads may read the environment meanwhile, which would be unsafe during setenv.
func withVariable<Result>(_ name: String, _ body: () -> Result) -> Result {
    guard getenv(name) == nil else { return body() }
    // Never freed: the library may keep a reference to the value.
    let environment = cscard_environment_add(strdup("\(name)=1"))
    defer { cscard_environment_restore(environment, name) }
    return body()
}

/// The operations on a context while another thread waits in it.
struct SCardCanceller: Sendable {
    fileprivate let raw: SCARDCONTEXT

    /// Ends the wait.  A wait that has not begun is not ended: the library forgets the request.
    func cancel() { SCardCancel(raw) }
}

/// The state of a reader as returned by SCardGetStatusChange.
struct ReaderSnapshot: Hashable, Sendable {
    var name: String
    /// SCARD_STATE_…, without SCARD_STATE_CHANGED.
    var flags: UInt32 = UInt32(SCARD_STATE_UNAWARE)
    /// Counts insertions and removals, with overflow.
    var eventCount: UInt16 = 0
    var atr: [UInt8] = []

    var hasCard: Bool { flags & UInt32(SCARD_STATE_PRESENT) != 0 }
    var isMute: Bool { flags & UInt32(SCARD_STATE_MUTE) != 0 }
    var isExclusive: Bool { flags & UInt32(SCARD_STATE_EXCLUSIVE) != 0 }
    var isInUse: Bool { flags & UInt32(SCARD_STATE_INUSE) != 0 }
    var isUnavailable: Bool { flags & UInt32(SCARD_STATE_UNAVAILABLE | SCARD_STATE_UNKNOWN) != 0 }
}

/// A connection to a card or a reader, with its own context.  When the value ends, it disconnects and leaves the card
/// as it is.
struct SCardHandle: ~Copyable {
    /// Owned so that it is released after `deinit` has disconnected.
    private let context: SCardContext
    private let raw: SCARDHANDLE
    private(set) var transmissionProtocol: TransmissionProtocol
    /// True if the library and pcscd no longer agree on message boundaries; only `deinit` may follow.
    private(set) var isBroken = false
    private var isConnected = true
    /// The buffer for answers, one at a time.
    private let buffer: UnsafeMutableBufferPointer<UInt8>

    /// - Throws: the error of `establish` or of `connect`, whichever failed.
    init(_ reader: String, _ sharing: CardSharing, _ protocols: CardProtocols) throws(CardError) {
        let context = try SCardContext.forOperation()
        var raw = SCARDHANDLE()
        var activeProtocol = DWORD()
        let status = ProcessExit.guarded {
            SCardConnect(context.raw, reader, sharing.code, protocols.code(sharing), &raw, &activeProtocol)
        }
        guard PCSCStatus(status) == .success else {
            // Either polkit denies access to the reader, or the service is gone.
            if PCSCStatus(status).isHangUp { _ = try SCardContext.forOperation() }
            throw CardError(PCSCStatus(status), during: .connect)
        }
        self.context = context
        self.raw = raw
        transmissionProtocol = TransmissionProtocol(sharing, activeProtocol)
        buffer = .allocate(capacity: cscard_max_buffer_size_extended())
    }

    deinit {
        if isConnected && !isBroken {
            _ = ProcessExit.guarded { SCardDisconnect(raw, DWORD(SCARD_LEAVE_CARD)) }
        }
        buffer.deallocate()
    }

    mutating func disconnect(_ disposition: CardDisposition) throws(PCSCStatus) {
        try check(ProcessExit.guarded { SCardDisconnect(raw, disposition.code) })
        isConnected = false
    }

    mutating func reconnect(
        _ sharing: CardSharing, _ protocols: CardProtocols, _ initialization: CardDisposition
    ) throws(PCSCStatus) {
        var activeProtocol = DWORD()
        try check(
            ProcessExit.guarded {
                SCardReconnect(raw, sharing.code, protocols.code(sharing), initialization.code, &activeProtocol)
            })
        transmissionProtocol = TransmissionProtocol(sharing, activeProtocol)
    }

    func beginTransaction() throws(PCSCStatus) { try check(ProcessExit.guarded { SCardBeginTransaction(raw) }) }

    func endTransaction(_ disposition: CardDisposition) throws(PCSCStatus) {
        try check(ProcessExit.guarded { SCardEndTransaction(raw, disposition.code) })
    }

    /// - Returns: the answer, of any length including zero.
    mutating func transmit(_ command: [UInt8], _ stopwatch: ExchangeStopwatch?) throws(PCSCStatus) -> [UInt8] {
        let pci =
            switch transmissionProtocol {
            case .t0: cscard_pci_t0()
            case .t1: cscard_pci_t1()
            case .raw: cscard_pci_raw()
            }
        var count = DWORD(buffer.count)
        let status = timed(stopwatch) {
            SCardTransmit(raw, pci, command, DWORD(command.count), nil, buffer.baseAddress, &count)
        }
        return try take(count, status)
    }

    mutating func control(
        _ code: UInt32, _ input: [UInt8], _ stopwatch: ExchangeStopwatch?
    ) throws(PCSCStatus) -> [UInt8] {
        var count = DWORD()
        let status = timed(stopwatch) {
            SCardControl(
                raw, DWORD(code), input, DWORD(input.count), buffer.baseAddress, DWORD(buffer.count), &count)
        }
        return try take(count, status)
    }

    mutating func attribute(_ id: UInt32) throws(PCSCStatus) -> [UInt8] {
        var count = DWORD(MAX_BUFFER_SIZE)
        let status = ProcessExit.guarded {
            SCardGetAttrib(raw, DWORD(id), buffer.baseAddress, &count)
        }
        return try take(count, status)
    }

    func setAttribute(_ id: UInt32, _ value: [UInt8]) throws(PCSCStatus) {
        try check(ProcessExit.guarded { SCardSetAttrib(raw, DWORD(id), value, DWORD(value.count)) })
    }

    mutating func status() throws(PCSCStatus) -> (state: UInt32, protocol: UInt32, atr: [UInt8]) {
        var state = DWORD()
        var activeProtocol = DWORD()
        var count = DWORD(MAX_ATR_SIZE)
        let status = ProcessExit.guarded {
            SCardStatus(raw, nil, nil, &state, &activeProtocol, buffer.baseAddress, &count)
        }
        // A count of 34 means a card that pcscd has not powered yet.
        let atr = try take(count <= DWORD(MAX_ATR_SIZE) ? count : 0, status)
        return (UInt32(truncatingIfNeeded: state), UInt32(truncatingIfNeeded: activeProtocol), atr)
    }

    /// Copies the received bytes and wipes them from the buffer.
    private mutating func take(_ count: DWORD, _ status: LONG) throws(PCSCStatus) -> [UInt8] {
        // The library then leaves the answer in the socket and takes it for the next one.
        isBroken = PCSCStatus(status) == .insufficientBuffer && count > DWORD(buffer.count)
        try check(status)
        let received = buffer.prefix(Int(clamping: count))
        defer {
            UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: received)).initializeMemory(
                as: UInt8.self, repeating: 0)
        }
        return Array(received)
    }
}

extension SCardContext {
    /// Returns a context, or throws the reason why there is none.
    static func forOperation() throws(CardError) -> SCardContext {
        do throws(PCSCStatus) {
            do throws(PCSCStatus) {
                return try SCardContext()
            } catch  where error.isHangUp {
                // A service that refuses does so again.  One that was just ending is now gone or restarted.
                usleep(20_000)
                return try SCardContext()
            }
        } catch {
            throw CardError(error, during: .establish)
        }
    }
}

/// Calls the library and reports the duration to the stopwatch if there is an answer.
private func timed(_ stopwatch: ExchangeStopwatch?, _ call: () -> LONG) -> LONG {
    ProcessExit.guarded {
        guard let stopwatch else { return call() }
        let start = stopwatch.clock.now
        let status = call()
        if PCSCStatus(status) == .success { stopwatch.add(stopwatch.clock.now - start) }
        return status
    }
}

extension PCSCStatus {
    /// True if pcscd closed the socket.
    fileprivate var isHangUp: Bool { self == .commError || self == .securityViolation }
}

private func check(_ status: LONG) throws(PCSCStatus) {
    let status = PCSCStatus(status)
    guard status == .success else { throw status }
}

extension CardSharing {
    fileprivate var code: DWORD {
        switch self {
        case .shared: DWORD(SCARD_SHARE_SHARED)
        case .exclusive: DWORD(SCARD_SHARE_EXCLUSIVE)
        case .direct: DWORD(SCARD_SHARE_DIRECT)
        }
    }
}

extension CardProtocols {
    /// The protocol code: never RAW, which pcscd would apply to all users of the card; none for a direct connection.
    fileprivate func code(_ sharing: CardSharing) -> DWORD {
        guard sharing != .direct else { return 0 }
        return (contains(.t0) ? DWORD(SCARD_PROTOCOL_T0) : 0) | (contains(.t1) ? DWORD(SCARD_PROTOCOL_T1) : 0)
    }
}

extension CardDisposition {
    fileprivate var code: DWORD {
        switch self {
        case .leave: DWORD(SCARD_LEAVE_CARD)
        case .reset: DWORD(SCARD_RESET_CARD)
        case .powerOff: DWORD(SCARD_UNPOWER_CARD)
        }
    }
}

extension TransmissionProtocol {
    /// A direct connection stays raw while others use the card with a protocol: pcscd passes on raw commands with or
    /// without a card.
    fileprivate init(_ sharing: CardSharing, _ active: DWORD) {
        self = sharing == .direct ? .raw : TransmissionProtocol(code: UInt32(truncatingIfNeeded: active))
    }

    package init(code: UInt32) {
        self =
            switch Int32(truncatingIfNeeded: code) {
            case SCARD_PROTOCOL_T0: .t0
            case SCARD_PROTOCOL_T1: .t1
            default: .raw
            }
    }
}

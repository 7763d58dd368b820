import SmartCard
import USBDevices
import Waiting

/// A reader's open and claimed CCID interface: the pipe for commands, the interrupt endpoint and the slots.
///
/// It is released with its last reference.
final class CCIDInterface: Sendable {
    /// The pipe of the first slot.
    let pipe: CCIDPipe
    let slots: [CCIDSlot]
    /// The reason for the end; nil while the interface is open.
    private let ending = Lock<CardError?>(nil)
    private let handlers = Lock(Handlers())
    private let closing = Lock<Task<Void, Never>?>(nil)
    private let errors = Lock(0)

    /// Resets a reader that hangs, and returns the error to report.
    typealias HangAction = @Sendable () async -> CardError

    private struct Handlers {
        var mayReset: (@Sendable () -> Bool)?
        var readerHangs: HangAction?
    }

    private init(_ opened: CCIDPipe) {
        let pipes = opened.pipesOfSlots()
        pipe = pipes.first ?? opened
        slots = pipes.enumerated().map { CCIDSlot($1, number: UInt8(clamping: $0)) }
        for pipe in pipes {
            pipe.readerIsGone = { [weak self] in self?.end() }
            pipe.owner = self
        }
        for slot in slots { slot.explain = { [weak self] error in await self?.explain(error) ?? error } }
    }

    deinit { pipe.link.close {} }

    /// Opens the interface, discards data for an earlier user, and synchronizes bSeq.
    ///
    /// - Throws: `CardError` of kind `readerBusy`, `permissionDenied`, `readerGone`, `readerTimeout`, ….
    static func open(
        _ device: USBDevice, _ function: CCIDFunction, on bus: any USBBus, timeLimits: CCIDTimeLimits,
        deviceTurn: Turn
    ) async throws -> CCIDInterface {
        let link = try await bus.open(device, as: function)
        let quirks = KnownReader.quirks(
            vendorID: device.vendorID, productID: device.productID, release: device.release)
        let pipe = CCIDPipe(
            link, function, quirks: quirks, timeLimits: timeLimits, sequence: UInt8.random(in: 0...255),
            deviceTurn: quirks.contains(.oneInterfaceAtATime) ? deviceTurn : nil)
        do {
            await pipe.drain()
            try await resynchronize(pipe)
            if quirks.contains(.looksAfterPowerOff) { try await startLooking(pipe) }
        } catch {
            await link.close()
            throw error
        }
        let interface = CCIDInterface(pipe)
        interface.listen()
        return interface
    }

    /// Requests the slot status until an answer matches its request.
    private static func resynchronize(_ pipe: CCIDPipe) async throws {
        let timeout =
            pipe.quirks.contains(.slowStart)
            ? pipe.timeLimits.slowResynchronization : pipe.timeLimits.resynchronization
        for attempt in 1... {
            do {
                _ = try await pipe.perform(CCIDCommand(.getSlotStatus), timeout: timeout)
                return
            } catch let error as CardError
                where [.readerTimeout, .malformedAnswer].contains(error.kind)
                && attempt < pipe.timeLimits.resynchronizations
            {
                continue
            }
        }
    }

    private static func startLooking(_ pipe: CCIDPipe) async throws {
        for _ in 0..<pipe.timeLimits.firstLooks {
            if try await pipe.perform(CCIDCommand(.iccPowerOff)).commandStatus == .done { break }
        }
        try await Time.sleep(for: pipe.timeLimits.firstLook)
    }

    /// Releases the interface.  Later calls fail.
    ///
    /// Returns when no answer is left for the reader's next owner.  If an answer does not come in time, the device is reset,
    /// unless another of its interfaces is in use.
    func close() async {
        let closing = closing.withLock { closing in
            let task =
                closing
                ?? Task { [self] in
                    if mark(CardError(.readerGone)), await !settle(), mayReset?() ?? true {
                        try? await pipe.link.reset()
                    }
                    await pipe.link.close()
                }
            closing = task
            return task
        }
        await closing.value
    }

    private func settle() async -> Bool {
        var isIdle = true
        for slot in slots { isIdle = await slot.settle() && isIdle }
        return isIdle
    }

    var isOpen: Bool { ending.withLock { $0 == nil } }

    /// Returns true if the device may be reset, with all its interfaces.
    var mayReset: (@Sendable () -> Bool)? {
        get { handlers.withLock { $0.mayReset } }
        set { handlers.withLock { $0.mayReset = newValue } }
    }

    /// Called once when the reader is found to hang.  The interface is then already closed.
    var readerHangs: HangAction? {
        get { handlers.withLock { $0.readerHangs } }
        set { handlers.withLock { $0.readerHangs = newValue } }
    }

    /// Ends the interface: the reader has left, is released, or hangs.
    ///
    /// - Returns: true if it was open until now.
    @discardableResult private func end(_ reason: CardError = CardError(.readerGone)) -> Bool {
        guard mark(reason) else { return false }
        pipe.link.close {}
        return true
    }

    /// Ends the slots, once.
    private func mark(_ reason: CardError) -> Bool {
        let isNews = ending.withLock { ending in
            defer { ending = ending ?? reason }
            return ending == nil
        }
        guard isNews else { return false }
        for slot in slots { slot.end(reason) }
        // Those of a reader that hangs end when it is known what has become of it.
        if reason.kind != .readerTimeout { for slot in slots { slot.endStreams(reason) } }
        return true
    }

    // MARK: Readers that hang

    /// Finds the cause of a failed command: a reader that is slow with one command but answers others does not hang.
    private func explain(_ error: CardError) async -> CardError {
        // A task that waited for its turn meanwhile finds the interface closed.
        if let ending = ending.withLock({ $0 }), ending.kind == .readerTimeout { return ending }
        guard error.kind == .readerTimeout else { return error }
        do {
            try await Self.resynchronize(pipe)
        } catch let silence as CardError where silence.kind == .readerTimeout {
            guard end(error) else { return error }
            let end = await readerHangs?() ?? error
            for slot in slots { slot.endStreams(end) }
            return end
        } catch {}
        return error
    }

    // MARK: The interrupt endpoint

    /// Keeps one transfer pending.
    private func listen() {
        guard let endpoint = pipe.function.interruptIn else {
            for slot in slots { slot.isNotified = false }
            return
        }
        pipe.link.read(pipe.function.interruptPacketSize, from: endpoint, timeout: nil) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let message):
                errors.withLock { $0 = 0 }
                heard(message)
                listen()
            case .failure(.noDevice):
                end()
            case .failure(.interrupted):
                break
            case .failure:
                // A single error may be noise; an endpoint that keeps failing is no longer used.
                let count = errors.withLock { errors in
                    errors += 1
                    return errors
                }
                if count < 3 { listen() } else { for slot in slots { slot.isNotified = false } }
            }
        }
    }

    /// Processes NotifySlotChange (USB CCID 1.10, 6.3.1): two bits for each slot, the lower for presence, the upper for
    /// a change.
    private func heard(_ message: [UInt8]) {
        guard message.first == 0x50 else { return }
        for (index, slot) in slots.enumerated() where index / 4 + 1 < message.count {
            let bits = message[index / 4 + 1] >> (2 * (index % 4))
            if bits & 0x02 != 0 { slot.heard(isPresent: bits & 0x01 != 0) }
        }
    }
}

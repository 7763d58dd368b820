import ContactlessMetrics
import EMVContactless
import Foundation
import Logging
import SmartCard
import Waiting

/// The terminal's preparation and its sessions.
extension PaymentTerminal {
    package func prepare(using token: PaymentCardReader.Token) async throws -> HeldSession {
        try await preparing {
            let token = try await ReaderToken(token, for: configuration)
            if case .ofToken = configuration.cardDataKey, token.recipient == nil {
                throw PaymentCardReaderError.invalidReaderToken("it names no card data key")
            }
            let end = configuration.now().addingTimeInterval(configuration.sessionLifetime / .seconds(1))
            return (token, min(end, token.expiration), nil)
        }
    }

    package func prepareStoreAndForward() async throws -> HeldSession {
        try await preparing {
            let (preparation, end) = try await storingTerms()
            return (try ReaderToken(preparation), end, preparation)
        }
    }

    /// Creates a session on these terms.
    private func preparing(
        _ terms: () async throws -> (token: ReaderToken, end: Date, preparation: Preparation?)
    ) async throws -> HeldSession {
        watchSleep()
        guard !isAsleep else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        guard !isPreparing, reading == nil else { throw PaymentCardReaderError.readerBusy }
        isPreparing = true
        var label = MetricTable.Preparation.failed
        defer {
            isPreparing = false
            metrics.preparations.add(label)
        }
        events.send(.updateProgress(0))
        do {
            let (token, end, preparation) = try await terms()
            guard try await isLinked(token) else { throw PaymentCardReaderError.accountNotLinked }
            events.send(.updateProgress(30))
            try await openReader()
            // Loads tables now, and not while the first customer holds the card.
            EntryPoint(
                configuration: configuration.terminal, keys: configuration.certificationAuthorityKeys
            ).rehearse()
            events.send(.updateProgress(90))
            if preparation == nil { await notePreparation(token) }
            try Task.checkCancellation()
            guard !isAsleep else { throw PaymentCardReaderError.requestInterrupted }
            guard attached != nil else { throw PaymentCardReaderError.unsupported }
            let session = TerminalSession(token, end: end, storingAfter: preparation)
            begin(session)
            label = .prepared
            events.send(.updateProgress(100))
            return HeldSession(session: session, terminal: self)
        } catch let error as PaymentCardReaderError {
            throw error
        } catch is CancellationError {
            throw PaymentCardReaderError.requestInterrupted
        } catch let error as CardError {
            attached = nil
            throw PaymentCardReaderError(error)
        } catch {
            // A foreign error's text is not safe to log.
            logger.error("the reader could not be prepared: \(type(of: error))")
            throw PaymentCardReaderError.prepareFailed(nil)
        }
    }

    private func openReader() async throws {
        if let attached { try await attached.check() }
        _ = try await attachedReader()
        events.send(.updateProgress(60))
    }

    /// Ends the session, and releases the reader and the store.  A card that is being read is read to its end.
    package func end() async {
        interruptRead(with: .readCancelled)
        session = nil
        for task in [expiry, search, removal] { task?.cancel() }
        if let lastRead { try? await withTimeLimit(configuration.answerTime) { await lastRead.ended() } }
        attached = nil
        await store.close()
    }

    private func begin(_ session: TerminalSession) {
        self.session = session
        expiry?.cancel()
        expiry = Task { [weak self, weak session, tick = configuration.clockTick] in
            // The clock may be set in the meantime.
            while !Task.isCancelled, let session, await self?.isOver(session) == false {
                try? await Time.sleep(for: tick)
            }
        }
    }

    /// Returns true if the session is over, and then reports it to the application.
    private func isOver(_ session: TerminalSession) -> Bool {
        guard self.session === session else { return true }
        guard (try? check(session)) == nil else { return false }
        return true
    }

    /// Returns true if this is the present session.
    func has(_ session: TerminalSession) -> Bool { self.session === session }

    /// Checks that cards can be read in the session.
    ///
    /// - Throws: `ReadError` for a session that is over; `PaymentCardReaderError` for one that stores.
    func check(_ session: TerminalSession) throws {
        guard self.session === session else { throw PaymentCardReaderSession.ReadError.noReaderSession }
        let error: any Error
        if let preparation = session.preparation {
            guard let end = storingEnd(preparation) else { return }
            error = end
        } else {
            let now = configuration.now()
            guard now >= session.end else { return }
            error =
                now >= session.token.expiration
                ? PaymentCardReaderSession.ReadError.readerTokenExpired : .readerSessionExpired
        }
        if toldEnd !== session {
            toldEnd = session
            events.send(.notReady)
        }
        throw error
    }
}

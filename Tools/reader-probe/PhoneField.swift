import CardReaders
import SmartCard
import ToolReaders
import ToolSupport
import WalletPasses

extension ReaderOptions {
    /// Returns the first of `readers` whose chip can be reached: it sends frames between its polls, and phones wake.
    ///
    /// - Returns: nil for none.
    /// - Throws: the `CardError` of a reader that does not answer at all, if no other is left.
    func reader(withChip readers: [any CardReader]) async throws -> (any CardReader)? {
        var failures: [CardError] = []
        for reader in readers where [nil, .contactless].contains(reader.slot) {
            if reader.identity.backend == .serial { return reader }
            do {
                if try await reader.reachesChip() { return reader }
            } catch let error as CardError {
                failures.append(error)
            }
        }
        if let first = failures.first, failures.count == readers.count { throw first }
        return nil
    }

    /// Lends the field of a reader for the tap of a phone to `body`, and then has the phone show that it is done.
    ///
    /// A reader with a PN532 is preferred, and tells phones what the tap is for.  Without one, a phone is waited for on all
    /// readers, and only one that answers any reader is found.
    ///
    /// - Parameters:
    ///   - mode: the purpose of the tap.
    ///   - needsChip: true to accept no other reader.
    ///   - body: uses the reader's field, and must not keep it.
    /// - Throws: the error of `body`; `CardError` if no reader can be used, or nothing is presented in time.
    func withPhoneField<Result: Sendable>(
        for mode: PassReading.Mode, needsChip: Bool = false,
        _ body: (any CardReader, any ContactlessField) async throws -> Result
    ) async throws -> Result {
        let readers = try await readers()
        defer { Terminal.endProgress() }
        if let reader = try await reader(withChip: readers) {
            Terminal.progress("Hold a phone to the reader… (Ctrl-C to stop)")
            return try await reader.withChipField(patience: patience, broadcast: PollingFrame(for: mode).bytes) {
                field in
                let result = try await body(reader, field)
                try await field.release()
                return result
            }
        }
        let lack = FieldCapabilities.noBroadcast
        guard !needsChip else { throw lack }
        Terminal.remark("\(lack), and phones that wait for them are not found. \(lack.hint)")
        let reader = try await waitForCard(on: readers)
        let field = CardReaderField(reader, patience: patience)
        do {
            let result = try await body(reader, field)
            await field.release(.powerOff)
            return result
        } catch {
            await field.release(.leave)
            throw error
        }
    }
}

extension FieldCapabilities {
    /// The error of a reader that sends no frames to phones.
    static var noBroadcast: CardError {
        do { try FieldCapabilities().require(.broadcast) } catch { return error }
        return CardError(.unsupported)
    }
}

import Foundation
package import SmartCard
package import SmartCardPCSC
import SmartCardSimulator
package import SmartCardUSB
import Synchronization

extension ReaderOptions {
    /// The readers asked for, at least one.
    ///
    /// - Throws: ``CardError`` of kind `noReader`, `noService`, … .
    package func readers() async throws -> [any CardReader] {
        Ending.waitForCommand()
        let all: [any CardReader]
        switch (isVirtual, backend) {
        case (true, _): all = [try virtualReader()]
        case (_, .pcsc): all = try await pcscReaders()
        case (_, .usb): all = try await DirectReaders.readers()
        case (_, .auto):
            do {
                let readers = try await pcscReaders()
                let suffice = !matching(readers).isEmpty
                all = suffice ? readers : readers + ((try? await DirectReaders.readers()) ?? [])
            } catch let error as CardError where Self.leavesUSB.contains(error.kind) {
                all = (try? await DirectReaders.readers()) ?? []
                // What is wrong with pcscd is what has to be mended.
                if all.isEmpty { throw error }
            }
        }
        guard !all.isEmpty else { throw Self.noReader }
        let matching = matching(all)
        guard !matching.isEmpty else {
            let names = all.map { "“\($0.identity.name)”" }.joined(separator: ", ")
            throw CardError(.noReader, "none is named “\(reader ?? "")”", hint: "Attached: \(names).")
        }
        return matching
    }

    /// What pcscd lists.
    ///
    /// - Throws: ``CardError`` of kind `noService` if pcscd takes the question and gives no answer.
    package static func attachedReaders() async throws -> [PCSCReader] {
        do {
            return try await withTimeLimit(.seconds(5)) { try await PCSCService().readers() }
        } catch let error as CardError where error.kind == .noReader {
            throw noReader
        } catch let error as CardError where error.kind == .readerTimeout {
            throw CardError(
                .noService, "pcscd hangs", hint: "Start it anew: sudo systemctl restart pcscd.socket pcscd.service")
        }
    }

    /// The readers whose name contains ``reader``.
    private func matching(_ readers: [any CardReader]) -> [any CardReader] {
        guard let reader else { return readers }
        return readers.filter { $0.identity.name.localizedCaseInsensitiveContains(reader) }
    }

    private func pcscReaders() async throws -> [any CardReader] {
        do {
            return try await Self.attachedReaders()
        } catch let error as CardError where error.kind == .noReader {
            return []
        }
    }

    /// What is wrong with pcscd, and not with a reader.
    private static let leavesUSB: Set<CardError.Kind> = [.noService, .versionMismatch, .permissionDenied]

    private static let noReader = CardError(
        .noReader, hint: "Plug in a reader and check that lsusb shows it; or try --virtual, which needs none.")

    private func virtualCard(_ card: String) throws -> any VirtualCard {
        if let builtIn = VirtualCards.named(card) { return builtIn }
        guard let text = FileManager.default.contents(atPath: card) else {
            throw ToolError.usage(
                "no card “\(card)”, neither built in nor a file",
                "Built in: \(VirtualCards.all.map(\.name).joined(separator: ", ")).")
        }
        do {
            return try CardFile(parsing: [UInt8](text)).makeCard()
        } catch {
            throw ToolError.usage(
                "\(card): \(error)",
                "The format: Sources/SmartCardSimulator/Documentation.docc/CardFileFormat.md; examples: Sources/SmartCardSimulator/Cards."
            )
        }
    }

    private func virtualReader() throws -> any CardReader {
        let device = SoftwareACR122U()
        for card in card.isEmpty ? ["visa"] : card { device.insert(try virtualCard(card)) }
        return VirtualReader(device)
    }

    /// Waits for a contactless card on one of `readers`; with a reader named, for any card.
    ///
    /// - Throws: ``CardError`` of kind `cardAbsent` or `cardMute` when ``patience`` is at its end; a reader's own error when
    ///   none is left to wait for.
    package func waitForCard(on readers: [any CardReader]) async throws -> any CardReader {
        let patience = patience
        let anyCard = reader != nil
        defer { Terminal.endProgress() }
        return try await withThrowingTaskGroup(of: Result<any CardReader, any Error>.self) { group in
            defer { group.cancelAll() }
            for reader in readers {
                group.addTask {
                    do {
                        for try await state in reader.slotStates() {
                            // A reader that makes nonsense of a card is asked about it too.
                            if case .card(let atr, _) = state, anyCard || atr.contactless != nil || !atr.defects.isEmpty
                            {
                                return .success(reader)
                            }
                        }
                        return .failure(CardError(.readerGone, reader.identity.name))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            group.addTask {
                // A card that lies there already takes readers a moment to report.
                try await Task.sleep(for: min(.seconds(1), patience ?? .seconds(1)))
                Terminal.progress("Put a card on the reader… (Ctrl-C to stop)")
                try await Task.sleep(for: (patience ?? .seconds(1_000_000)) - .seconds(1))
                // A reader that leaves meanwhile has neither.
                for reader in readers where (try? await reader.currentState()) == .muteCard {
                    throw CardError(.cardMute)
                }
                throw CardError(.cardAbsent)
            }
            var failures: [any Error] = []
            while let result = try await group.next() {
                switch result {
                case .success(let reader): return reader
                case .failure(let error): failures.append(error)
                }
                if failures.count == readers.count, let first = failures.first { throw first }
            }
            throw CardError(.cardAbsent)
        }
    }

    /// Longer than any driver takes to give up.
    private static let exchangeLimit = Duration.seconds(60)

    /// Waits for a card, connects to it, and gives it back when `body` is done.
    package func withCard<Result>(
        _ body: (_ reader: any CardReader, _ card: any CardConnection, _ channel: any CardChannel) async throws ->
            Result
    ) async throws -> Result {
        let reader = try await waitForCard(on: try await readers())
        let card = try await withTimeLimit(Self.exchangeLimit) { try await reader.connect() }
        do {
            let result = try await body(
                reader, card, TimeLimitLayer(card, limit: Self.exchangeLimit).layered(logger: logger))
            await card.disconnect(.leave)
            return result
        } catch {
            await card.disconnect(.leave)
            throw error
        }
    }
}

/// The readers that this process drives over USB.
package enum DirectReaders {
    private static let known = Mutex<[USBReader]>([])

    package static func readers() async throws -> [any CardReader] {
        let readers = try await USBReaders().readers()
        remember(readers)
        return readers
    }

    package static func remember(_ readers: [USBReader]) { known.withLock { $0 += readers } }

    /// Ends everything over USB.
    package static func giveBack() async {
        for reader in known.withLock({ $0 }) { await reader.close() }
    }
}

extension CardReader {
    /// What is in the slot now.
    package func currentState() async throws -> SlotState {
        try await withTimeLimit(.seconds(10)) {
            for try await state in slotStates() { return state }
            throw CardError(.readerGone, identity.name)
        }
    }
}

package import CardReaders
import Foundation
package import SmartCard
import SmartCardSimulator
import ToolSupport

extension ReaderOptions {
    /// The backends in which to look for readers, besides ``device``.
    package var backends: Machine.Backends {
        switch backend {
        case .auto: device == nil ? .all : []
        case .pcsc: .pcsc
        case .usb: .usb
        }
    }

    package var machine: Machine { Machine(backends, devices: device.map { [$0] } ?? []) }

    /// Returns the selected readers, at least one.
    ///
    /// - Throws: ``CardError`` of kind `noReader`, `noService`, … .
    package func readers() async throws -> [any CardReader] {
        ProgramExit.waitForCommand()
        let all: [any CardReader]
        if isVirtual {
            all = [try virtualReader()]
        } else {
            do { all = try await machine.readers() } catch let error as CardError where error.kind == .noReader {
                throw CardError(
                    .noReader, error.detail,
                    hint: "Plug in a reader and check that lsusb shows it; or try --virtual, which needs none.")
            }
        }
        let matching = all.filter { matches($0.identity.name) }
        guard !matching.isEmpty else {
            let names = all.map { "“\($0.identity.name)”" }.joined(separator: ", ")
            throw CardError(.noReader, "none is named “\(reader ?? "")”", hint: "Attached: \(names).")
        }
        return matching
    }

    /// Returns true if a reader of this name is selected.
    package func matches(_ name: String) -> Bool { reader.map(name.localizedCaseInsensitiveContains) ?? true }

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

    /// Waits for a contactless card on one of `readers`; if a reader was named, for any card.
    ///
    /// - Throws: ``CardError`` of kind `cardAbsent` or `cardMute` after ``patience``; a reader's own error if no other
    ///   reader is left.
    package func waitForCard(on readers: [any CardReader]) async throws -> any CardReader {
        let patience = patience
        let anyCard = reader != nil
        defer { Terminal.endProgress() }
        return try await withThrowingTaskGroup(of: Result<any CardReader, any Error>.self) { group in
            defer { group.cancelAll() }
            for reader in readers {
                group.addTask {
                    do {
                        // A reader that reports a malformed ATR is tried as well.
                        _ = try await reader.waitForCard { atr in
                            anyCard || atr.contactless != nil || !atr.defects.isEmpty
                        }
                        return .success(reader)
                    } catch {
                        return .failure(error)
                    }
                }
            }
            group.addTask {
                // Readers report a card that is already present only after a moment.
                try await Task.sleep(for: min(.seconds(1), patience ?? .seconds(1)))
                Terminal.progress("Put a card on the reader… (Ctrl-C to stop)")
                try await Task.sleep(for: (patience ?? .seconds(1_000_000)) - .seconds(1))
                // A reader that leaves meanwhile has no mute card.
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

    /// Waits for a card, connects to it, and disconnects after `body`.
    package func withCard<Result>(
        _ body: (_ reader: any CardReader, _ card: any CardConnection, _ channel: any CardChannel) async throws ->
            Result
    ) async throws -> Result {
        let reader = try await waitForCard(on: try await readers())
        let card = try await withTimeLimit(Stack.longestExchange) { try await reader.connect() }
        do {
            let result = try await body(reader, card, Stack(for: reader, logger: logger).over(card))
            await card.disconnect(.leave)
            return result
        } catch {
            await card.disconnect(.leave)
            throw error
        }
    }
}

extension CardReader {
    /// Returns the present state of the slot.
    package func currentState() async throws -> SlotState {
        try await withTimeLimit(.seconds(10)) {
            for try await state in slotStates() { return state }
            throw CardError(.readerGone, identity.name)
        }
    }
}

extension Machine {
    /// Releases the readers that this program drives over USB; kernel drivers get their devices back.
    package static let giveBack: @Sendable () async -> Void = { await Machine().close() }
}

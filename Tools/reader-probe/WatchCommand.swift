import ArgumentParser
import Foundation
import SmartCard
import SmartCardPCSC
import SmartCardUSB
import ToolSupport

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Shows readers and cards as they come and go, until interrupted.",
        discussion: "With --json every event is one object on one line.")

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        if readerOptions.isVirtual {
            for reader in try await readerOptions.readers() {
                try show(WatchEvent("readerAttached", reader.identity.name))
                for try await state in reader.slotStates() { try show(WatchEvent(reader.identity.name, state)) }
            }
            return
        }
        if readerOptions.backend == .usb { return try await watchUSB() }
        // Fails at once where there is no service; one that goes away later is waited for.
        let names = try await ReaderOptions.attachedReaders()
        if names.isEmpty { Terminal.progress("No reader yet… (Ctrl-C to stop)\n") }
        for try await event in PCSCService().events(waitForService: true) { try show(WatchEvent(event)) }
    }

    /// Every reader that is plugged in, and its cards.
    private func watchUSB() async throws {
        var watches: [USBReaderID: Task<Void, Never>] = [:]
        for try await event in USBReaders().events() {
            switch event {
            case .attached(let reader):
                DirectReaders.remember([reader])
                try show(WatchEvent("readerAttached", reader.identity.name))
                watches[reader.id] = Task { [self] in
                    do {
                        for try await state in reader.slotStates() { try show(WatchEvent(reader.identity.name, state)) }
                    } catch let error as CardError where error.kind != .readerGone {
                        _ = Terminal.report(error, of: ReaderProbe.self)
                    } catch {}
                }
            case .detached(let reader):
                watches.removeValue(forKey: reader.id)?.cancel()
                try show(WatchEvent("readerRemoved", reader.identity.name))
            }
        }
    }

    private func show(_ event: WatchEvent) throws {
        if let part = readerOptions.reader, let name = event.reader, !name.localizedCaseInsensitiveContains(part) {
            return
        }
        if output.json {
            try Report.printLine(event)
        } else {
            Terminal.print(event.text)
        }
    }
}

/// What `watch --json` prints.
private struct WatchEvent: Encodable {
    /// `readerAttached`, `readerRemoved`, `cardInserted`, `cardMute`, `cardRemoved`, `usageChanged`,
    /// `serviceUnavailable`
    let event: String
    @OrNull var reader: String?
    @OrNull var atr: String?
    @OrNull var technology: String?
    /// For `usageChanged`: `unused`, `shared`, `exclusive`.
    @OrNull var usage: String?

    init(_ event: String, _ reader: String?, atr: ATR? = nil, usage: String? = nil) {
        self.event = event
        self.reader = reader
        self.atr = atr?.bytes.hex
        technology = atr?.technology
        self.usage = usage
    }

    init(_ event: PCSCEvent) {
        switch event {
        case .serviceUnavailable: self.init("serviceUnavailable", nil)
        case .readerAttached(let reader): self.init("readerAttached", reader.name)
        case .readerRemoved(let reader): self.init("readerRemoved", reader.name)
        case .cardInserted(let reader, let atr): self.init("cardInserted", reader.name, atr: atr)
        case .cardMute(let reader): self.init("cardMute", reader.name)
        case .cardRemoved(let reader): self.init("cardRemoved", reader.name)
        case .usageChanged(let reader, let usage): self.init("usageChanged", reader.name, usage: usage.rawValue)
        }
    }

    init(_ reader: String, _ state: SlotState) {
        switch state {
        case .card(let atr, _): self.init("cardInserted", reader, atr: atr)
        case .muteCard: self.init("cardMute", reader)
        case .empty, .unknown: self.init("cardRemoved", reader)
        }
    }

    var text: String {
        let time = Date().formatted(.iso8601.time(includingFractionalSeconds: true).timeZone(separator: .omitted))
        let what =
            switch event {
            case "readerAttached": "reader attached"
            case "readerRemoved": "reader removed"
            case "cardInserted": "card inserted: \(technology ?? "")  \(Terminal.styled(atr ?? "", .dim))"
            case "cardMute": "a card that does not answer"
            case "cardRemoved": "no card"
            case "usageChanged": "card \(usage ?? "")"
            default: "the smart card service does not answer; waiting for it"
            }
        return "\(Terminal.styled(time, .dim))  \(reader.map { Terminal.styled($0, .bold) + "  " } ?? "")\(what)"
    }
}

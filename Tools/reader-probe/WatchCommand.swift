import ArgumentParser
import CardReaders
import Foundation
import SmartCard
import SmartCardPCSC
import ToolReaders
import ToolSupport

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Shows readers and cards that come and go, until interrupted.",
        discussion: "With --json, every event is one object on one line.")

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
        let (machine, backends) = (readerOptions.machine, readerOptions.backends)
        // Fails at once if there is nothing to watch, but waits for a service that leaves later.
        let listing = await machine.look()
        if listing.readers.isEmpty {
            let failures = listing.failures
            if let failure = failures[.serial] ?? failures[.pcsc] ?? (backends == .usb ? failures[.usb] : nil) {
                throw failure
            }
            Terminal.progress("No reader yet… (Ctrl-C to stop)\n")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            // Pcscd also reports the use of cards.
            if backends.contains(.pcsc) {
                let isThere = listing.failures[.pcsc] == nil
                group.addTask { try await watchService(isThere: isThere) }
            }
            if backends != .pcsc { group.addTask { try await watchDriven(machine) } }
            try await group.waitForAll()
        }
    }

    /// - Parameter isThere: true if pcscd has answered; otherwise nothing is reported until it does.
    private func watchService(isThere: Bool) async throws {
        var isThere = isThere
        for try await event in PCSCService().events(waitForService: true) {
            if case .serviceUnavailable = event, !isThere { continue }
            isThere = true
            try show(WatchEvent(event))
        }
    }

    /// Watches the readers that this process drives, and their cards.
    private func watchDriven(_ machine: Machine) async throws {
        var watches: [String: (name: String, task: Task<Void, Never>)] = [:]
        defer { for watch in watches.values { watch.task.cancel() } }
        for await listing in machine.listings(thoroughly: false) {
            let driven = listing.readers.filter { $0.identity.backend != .pcsc }
            for (id, watch) in watches where !driven.contains(where: { $0.id == id }) {
                watch.task.cancel()
                watches[id] = nil
                try show(WatchEvent("readerRemoved", watch.name))
            }
            for reader in driven where watches[reader.id] == nil {
                let name = reader.identity.name
                try show(WatchEvent("readerAttached", name))
                let task = Task { [self] in
                    // One that hung and was reset is watched again, once.
                    for isLast in [false, true] {
                        do {
                            for try await state in reader.slotStates() { try show(WatchEvent(name, state)) }
                            return
                        } catch let error as CardError where error.kind != .readerGone {
                            _ = Terminal.report(error, of: ReaderProbe.self)
                            guard error.kind == .readerTimeout, !isLast else { return }
                        } catch { return }
                    }
                }
                watches[reader.id] = (name, task)
            }
        }
    }

    private func show(_ event: WatchEvent) throws {
        if let name = event.reader, !readerOptions.matches(name) { return }
        if output.json {
            try Report.printLine(event)
        } else {
            Terminal.print(event.text)
        }
    }
}

/// An event, as printed by `watch --json`.
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

import Foundation
import Waiting

/// A receipt printer that understands ESC/POS.
public struct ESCPOSPrinter: ReceiptPrinterService {
    public enum Address: Hashable, Sendable {
        /// Raw bytes over TCP.
        case tcp(host: String, port: UInt16 = 9100)
        /// A device file: `/dev/usb/lp0`, or a serial line.
        case device(path: String)
        /// Direct USB access without the kernel's driver, which gets the printer back afterward.  Takes the first
        /// printer, or the first with these identifiers.
        case usb(vendorID: UInt16? = nil, productID: UInt16? = nil, serialNumber: String? = nil)

        /// Parses `tcp://HOST:9100`, the path of a device file, `usb:` or `usb:VVVV:PPPP`.
        ///
        /// - Returns: nil for any other text.
        public init?(_ text: String) {
            if text.hasPrefix("/") {
                self = .device(path: text)
            } else if text.hasPrefix("tcp://") {
                guard let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty,
                    parts.path.isEmpty, let port = UInt16(exactly: parts.port ?? 9100)
                else { return nil }
                // An IPv6 address is in brackets.
                self = .tcp(host: host.trimmingCharacters(in: ["[", "]"]), port: port)
            } else if text == "usb:" {
                self = .usb()
            } else if text.hasPrefix("usb:") {
                let numbers = text.dropFirst(4).split(separator: ":", omittingEmptySubsequences: false)
                guard numbers.count == 2, let vendor = UInt16(numbers[0], radix: 16),
                    let product = UInt16(numbers[1], radix: 16)
                else { return nil }
                self = .usb(vendorID: vendor, productID: product)
            } else {
                return nil
            }
        }
    }

    /// The requests that the printer answers.
    public enum Answers: String, CaseIterable, Hashable, Sendable {
        /// The printer reports its state on request (DLE EOT) and the end of printing (GS r): success means printed.
        case all
        /// The printer reports its state on request: success means that it has the receipt and reports no problem.
        case state
        /// The printer answers nothing: success means that it has taken the bytes.
        case none
    }

    /// The time limits.  A printer that exceeds one counts as silent.
    public struct Limits: Hashable, Sendable {
        /// The limit for reaching the printer.
        public var opening: Duration
        /// The limit for an answer about its state.
        public var answer: Duration
        /// The limit for accepting more bytes.
        public var progress: Duration
        /// The limit for reporting the end of printing.
        public var printing: Duration

        public init(
            opening: Duration = .seconds(10), answer: Duration = .seconds(5), progress: Duration = .seconds(15),
            printing: Duration = .seconds(30)
        ) {
            (self.opening, self.answer, self.progress, self.printing) = (opening, answer, progress, printing)
        }
    }

    private let port: any PrinterPort
    private let renderer: ESCPOSRenderer
    private let language: ReceiptLanguage
    private let answers: Answers
    private let limits: Limits

    public init(
        _ address: Address, renderer: ESCPOSRenderer = ESCPOSRenderer(), language: ReceiptLanguage = .english,
        answers: Answers = .all, limits: Limits = Limits()
    ) {
        let port: any PrinterPort =
            switch address {
            case .tcp(let host, let number): TCPPort(host: host, port: number)
            case .device(let path): DevicePort(path: path)
            case .usb(let vendorID, let productID, let serialNumber):
                USBPort(vendorID: vendorID, productID: productID, serialNumber: serialNumber)
            }
        self.init(port, renderer: renderer, language: language, answers: answers, limits: limits)
    }

    init(
        _ port: any PrinterPort, renderer: ESCPOSRenderer, language: ReceiptLanguage, answers: Answers, limits: Limits
    ) {
        (self.port, self.renderer, self.language) = (port, renderer, language)
        (self.answers, self.limits) = (answers, limits)
    }

    public func condition() async -> PrinterCondition? {
        do {
            let link = try await port.open(within: limits.opening)
            let condition = await condition(link)
            await link.close()
            return condition
        } catch {
            return error
        }
    }

    public func printReceipt(content: ReceiptContent) async -> PrintingResult {
        let bytes = renderer.render(ReceiptDocument(content, language: language))
        var progress = PrintingProgress(sent: 0, total: bytes.count)
        let link: any PrinterLink
        do {
            link = try await port.open(within: limits.opening)
        } catch {
            return Task.isCancelled ? .cancel(progress) : .failure(PrintingFailure(error, progress))
        }
        let condition = await print(bytes, on: link, &progress)
        await link.close()
        if Task.isCancelled, condition != nil { return .cancel(progress) }
        return condition.map { .failure(PrintingFailure($0, progress)) } ?? .success
    }

    private func print(
        _ bytes: [UInt8], on link: any PrinterLink, _ progress: inout PrintingProgress
    ) async -> PrinterCondition? {
        if let condition = await condition(link) { return condition }
        // The same result as that of any wait when the task is canceled.
        guard !Task.isCancelled else { return .silent }
        let (sent, obstacle) = await link.send(bytes, within: limits.progress)
        progress = PrintingProgress(sent: sent, total: bytes.count)
        if let obstacle {
            // A printer that accepts no data may report the reason.
            guard obstacle == .silent, !Task.isCancelled else { return obstacle }
            return await condition(link) ?? obstacle
        }
        switch answers {
        case .all: return await confirmation(link)
        case .state, .none: return await condition(link)
        }
    }

    /// Waits until everything is printed.
    private func confirmation(_ link: any PrinterLink) async -> PrinterCondition? {
        do {
            let answer = try await ask(.transmitPaperSensor, link, within: limits.printing) { $0 & 0x90 == 0 }
            if let answer { return answer & 0x0C == 0 ? nil : .paperOut }
            return await condition(link) ?? .silent
        } catch {
            return error
        }
    }

    private func condition(_ link: any PrinterLink) async -> PrinterCondition? {
        if let condition = await link.condition() { return condition }
        guard answers != .none else { return nil }
        do {
            var status: [UInt8: UInt8] = [:]
            for number in UInt8(1)...4 {
                let answer = try await ask(.transmitStatus(number), link, within: limits.answer) { $0 & 0x93 == 0x12 }
                guard let answer else { return .silent }
                status[number] = answer
            }
            return Self.statusBits.first { number, bits, _ in status[number, default: 0] & bits != 0 }?.condition
        } catch {
            return error
        }
    }

    /// The conditions of the DLE EOT bits, the most specific first.
    private static let statusBits: [(number: UInt8, bits: UInt8, condition: PrinterCondition)] = [
        (2, 0x04, .coverOpen),
        (3, 0x08, .jam),
        (4, 0x60, .paperOut),
        (2, 0x20, .paperOut),
        (3, 0x20, .failed("it reports an error that it cannot recover from")),
        (3, 0x44, .failed("it reports an error")),
        (2, 0x40, .failed("it reports an error")),
        (1, 0x08, .offline),
    ]

    /// Sends a question and waits for the answer.
    ///
    /// - Returns: nil if no byte that satisfies `isAnswer` arrives in time.
    private func ask(
        _ command: ESCPOSCommand, _ link: any PrinterLink, within limit: Duration, isAnswer: (UInt8) -> Bool
    ) async throws(PrinterCondition) -> UInt8? {
        let end = Time.now + limit
        let (_, condition) = await link.send(command.bytes, within: limit)
        if let condition { throw condition }
        while Time.now < end, !Task.isCancelled {
            // The last answer is the newest: an answer to an earlier question may be late.
            let answers = try await link.receive(within: end - Time.now)
            if let answer = answers.last(where: isAnswer) { return answer }
        }
        return nil
    }
}

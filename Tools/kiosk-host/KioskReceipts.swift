import CardReceipts
import EMVContactless
import Foundation
import KioskBridge
import KioskKit
import ToolSupport

/// The receipts of paid orders: printed, or written to standard error where there is no printer.
struct KioskReceipts: Sendable {
    /// A paid order, and what its receipt must say.
    struct Sale: Sendable {
        let order: KioskOrder
        let payment: PaymentResult
        let time: Date
    }

    private let merchant: ReceiptMerchant
    /// The printer's address; nil for standard error.
    private let printer: String?

    /// - Throws: `ToolError` for a file that is no merchant, and for an address of no printer.
    init(merchant file: String?, printer: String?) throws {
        merchant = try file.map(Self.merchant) ?? Self.example
        self.printer = printer
        guard printer.map({ Self.service($0, .english) != nil }) ?? true else {
            throw ToolError.usage(
                "“\(printer ?? "")” is no printer's address",
                "Give --printer ipp://HOST/ipp/print, tcp://HOST:9100, /dev/usb/lp0, usb: or usb:VVVV:PPPP.")
        }
    }

    private static let example = ReceiptMerchant(
        name: "Example Kiosk", address: ["Main Street 1", "12345 Example"], country: "DE", merchantID: "0815",
        terminalID: "K-1")

    private static func merchant(_ file: String) throws -> ReceiptMerchant {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ToolError.usage("\(file) cannot be read", "Check its name and permissions.")
        }
        do {
            return try JSONDecoder().decode(ReceiptMerchant.self, from: data)
        } catch {
            throw ToolError.usage(
                "\(file) is no merchant: \((error as? DecodingError)?.place ?? "\(error)")",
                "Give JSON with name, address (lines), country, merchant_id and terminal_id: see receipt(1).")
        }
    }

    private static func service(_ address: String, _ language: ReceiptLanguage) -> (any ReceiptPrinterService)? {
        IPPPrinter(address, language: language)
            ?? ESCPOSPrinter.Address(address).map { ESCPOSPrinter($0, language: language) }
    }

    /// Prints the receipt of a sale.
    ///
    /// - Parameter locale: the language of the page: `de`; English if it is none of the receipts' languages.
    /// - Throws: `ReceiptError`; `PrintingFailure`.
    func print(_ sale: Sale, locale: String?) async throws {
        let language = locale.flatMap { ReceiptLanguage(rawValue: String($0.prefix(2))) } ?? .english
        let content = try content(of: sale)
        guard let printer, let service = Self.service(printer, language) else {
            return Terminal.remark(TextRenderer(columns: 42).render(ReceiptDocument(content, language: language)))
        }
        switch await service.printReceipt(content: content) {
        case .success: return
        case .failure(let failure): throw failure
        case .cancel: throw CancellationError()
        }
    }

    private func content(of sale: Sale) throws(ReceiptError) -> ReceiptContent {
        let order = sale.order
        func units(_ amount: Decimal) throws(ReceiptError) -> Int {
            guard let units = MinorUnits.units(amount, of: order.currencyCode) else { throw .malformedField(.amount) }
            return Int(units)
        }
        var items: [ReceiptLineItem] = []
        for line in order.lines {
            items.append(
                ReceiptLineItem(title: line.title, quantity: Decimal(line.quantity), amount: try units(line.total)))
        }
        let subtotal = items.reduce(0) { $0 + $1.amount }
        // A member pays less than the sum of the lines; some cards cost more.
        let surcharge = if let surcharge = sale.payment.surcharge { try units(surcharge) } else { 0 }
        let price = try units(order.total) - surcharge
        return try ReceiptContent(
            merchant: merchant,
            order: ReceiptOrder(
                id: order.id, lineItems: items,
                totals: ReceiptTotals(
                    subtotal: subtotal, discount: max(0, subtotal - price), fees: surcharge)),
            payment: sale.payment, date: sale.time)
    }
}

package import ArgumentParser
package import EMVContactless
package import Foundation
import SmartCard
import SmartCardSimulator
import ToolSupport

/// The options of a transaction and of its terminal.
package struct PaymentOptions: ParsableArguments {
    @Option(help: "The amount, with the currency's decimals: 12.34")
    package var amount: String?

    @Option(help: .init("The part of the amount that is cashback; with --type cashback.", valueName: "amount"))
    package var cashback: String?

    @Option(help: "Three letters or three digits of ISO 4217.")
    package var currency = "EUR"

    package enum Kind: String, ExpressibleByArgument, CaseIterable {
        case purchase, cash, cashback, refund

        var transactionKind: Transaction.Kind {
            switch self {
            case .purchase: .purchase
            case .cash: .cash
            case .cashback: .purchaseWithCashback
            case .refund: .refund
            }
        }
    }

    @Option(help: "The type of transaction.")
    package var type = Kind.purchase

    @Option(
        help: .init(
            """
            The reader's configuration in JSON; see reader-probe(1), Configuration. Default: a test terminal for all \
            schemes.
            """, valueName: "file"))
    package var config: String?

    @Option(help: .init("Certification authority keys to trust in addition to the published ones.", valueName: "file"))
    package var caKeys: String?

    @Option(
        help: .init(
            "Account numbers to refuse: one on each line, followed by the sequence number if only that card is meant.",
            valueName: "file"))
    package var exceptionFile: String?

    @Option(
        help: .init("The 4 bytes of tag 9F37, to repeat a transaction. Default: random.", valueName: "hex"))
    package var unpredictableNumber: String?

    package init() {}

    /// Returns the entry point with all kernels, configured by the file of `--config`.
    package func entryPoint() throws -> EntryPoint { try entryPoint(configuration: config) }

    /// - Parameter configuration: the configuration file; nil or `test`: the test configuration.
    package func entryPoint(configuration: String?) throws -> EntryPoint {
        EntryPoint(
            configuration: try self.configuration(configuration).validated(), keys: try Self.keys(beside: caKeys),
            exceptionFile: try exceptions())
    }

    private func exceptions() throws -> any ExceptionFile {
        guard let exceptionFile else { return NoExceptionFile() }
        let text = String(decoding: try Self.contents(of: exceptionFile), as: UTF8.self)
        do throws(ExceptionList.Malformed) { return try ExceptionList(parsing: text) } catch {
            throw ToolError.usage("\(exceptionFile): \(error)", "The format: reader-probe(1), TRANSACTIONS.")
        }
    }

    private func unpredictable() throws -> [UInt8] {
        guard let unpredictableNumber else {
            var random = SystemRandomNumberGenerator()
            return (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        guard let bytes = try? [UInt8](hex: unpredictableNumber), bytes.count == 4 else {
            throw ToolError.usage(
                "--unpredictable-number takes 4 bytes", "As hexadecimal digits: --unpredictable-number 11223344")
        }
        return bytes
    }

    package func transaction() throws -> Transaction {
        guard let currency = Currency[currency.uppercased()] else {
            throw ToolError.usage("“\(currency)” is no currency", "Name one by ISO 4217: --currency EUR")
        }
        guard let amount else {
            throw ToolError.usage("--amount is missing", "With the currency's decimals: --amount 12.34")
        }
        let other = try cashback.map { try minorUnits($0, of: currency) } ?? 0
        let unpredictableNumber = try unpredictable()
        guard
            let transaction = Transaction(
                type.transactionKind, amount: try minorUnits(amount, of: currency), amountOther: other,
                currency: currency, time: .now, unpredictableNumber: unpredictableNumber)
        else {
            throw ToolError.usage(
                "cashback goes with --type cashback only, and is no more than the amount",
                "For example: --type cashback --amount 50.00 --cashback 20.00")
        }
        return transaction
    }

    private func minorUnits(_ text: String, of currency: Currency) throws -> UInt64 {
        let exponent = currency.exponent ?? 0
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let decimals = parts.count == 2 ? parts[1] : ""
        let isDecimal = parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
        guard (1...2).contains(parts.count), isDecimal, decimals.count <= exponent,
            let units = UInt64(parts[0] + decimals + String(repeating: "0", count: exponent - decimals.count)),
            units <= Transaction.maximumAmount
        else {
            let example = currency.format("1234").prefix { $0 != " " }
            throw ToolError.usage(
                "“\(text)” is no amount in \(currency.code)",
                "Up to twelve digits, \(exponent) of them decimals: --amount \(example)")
        }
        return units
    }

    /// Returns the configuration in the file `config`; nil or `test`: the test configuration.
    private func configuration(_ config: String?) throws -> ReaderConfiguration {
        guard let config, config != "test" else { return .test }
        do {
            return try JSONDecoder().decode(ReaderConfiguration.self, from: try Self.contents(of: config))
        } catch let error as DecodingError {
            throw ToolError.usage("\(config): \(error.place)", "The format: reader-probe(1), Configuration.")
        } catch let error as ConfigurationError {
            throw ToolError.usage("\(config): \(error)", "The format: reader-probe(1), Configuration.")
        }
    }

    /// Returns the published keys, those of the virtual cards, and those in a file.
    ///
    /// - Parameter caKeys: the path of the file; nil for none.
    package static func keys(beside caKeys: String?) throws -> CAPublicKeys {
        var keys = CAPublicKeys.published
        for key in VirtualCards.certificationAuthorityKeys {
            keys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum, expiration: CalendarDate(packed: key.expires)))
        }
        guard let caKeys else { return keys }
        do {
            keys.merge(try CAPublicKeys(parsing: String(decoding: contents(of: caKeys), as: UTF8.self)))
        } catch let error as CAPublicKeyFileError {
            throw ToolError.usage("\(caKeys): \(error)", "The format: reader-probe(1), Keys.")
        }
        return keys
    }

    package static func contents(of path: String) throws -> Data {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ToolError.usage("\(path) cannot be read", "Check that the file is there and readable.")
        }
        return data
    }
}

extension DecodingError {
    /// The place in the JSON and the fault there.
    fileprivate var place: String {
        let context: Context
        var extra: (any CodingKey)?
        switch self {
        case .typeMismatch(_, let found), .valueNotFound(_, let found), .dataCorrupted(let found): context = found
        case .keyNotFound(let key, let found): (context, extra) = (found, key)
        @unknown default: return "\(self)"
        }
        let path = (context.codingPath + [extra].compactMap(\.self)).reduce("") { path, key in
            key.intValue.map { "\(path)[\($0)]" } ?? (path.isEmpty ? "" : "\(path).") + key.stringValue
        }
        return (path.isEmpty ? "" : "\(path): ") + (extra == nil ? context.debugDescription : "is missing")
    }
}

public import CardEncryption
import SmartCard

/// A card's number, code, expiry date and holder, for one payment.  They can be sealed and nothing else, and are wiped
/// when the last reference is released.
public final class CardPaymentData: Sendable {
    /// The maximum length of the card data's JSON text in bytes.
    private static let capacity = 1024

    private let text: ClearCardData
    /// The number with `*` for the hidden digits.
    public let masked: String
    /// The network that the customer pays through.
    public let network: CardNetwork?

    /// Creates card data from parts, of which no copy remains here.
    ///
    /// - Parameters:
    ///   - number: ASCII digits.
    ///   - securityCode: ASCII digits; empty: none.
    ///   - expiry: nil: none.
    ///   - cardholderName: empty: none.
    /// - Throws: `ClearCardDataError` if the parts are too long.
    package init(
        number: some Collection<UInt8>, securityCode: some Collection<UInt8>, expiry: YearMonth?,
        cardholderName: String = "", network: CardNetwork? = nil
    ) throws {
        masked = Self.mask(number)
        self.network = network
        text = try ClearCardData(capacity: Self.capacity) { buffer in
            var writer = WipedWriter(buffer: buffer)
            try writer.append(#"{"number":""#.utf8)
            try writer.append(number)
            if !securityCode.isEmpty {
                try writer.append(#"","cvv":""#.utf8)
                try writer.append(securityCode)
            }
            try writer.append(#"""#.utf8)
            if let expiry {
                let month = (expiry.month < 10 ? "0" : "") + "\(expiry.month)"
                try writer.append(#","expiryMonth":"\#(month)","expiryYear":"\#(expiry.year)""#.utf8)
            }
            if !cardholderName.isEmpty {
                try writer.append(#","cardholderName":\#(JSON.string(JSON.Text(cardholderName)).written)"#.utf8)
            }
            try writer.append("}".utf8)
            return writer.count
        }
    }

    /// Creates card data with an expiry date that is known to be one.
    ///
    /// - Parameters:
    ///   - expiryMonth: 1 to 12.
    ///   - expiryYear: four digits.
    package convenience init(
        number: some Collection<UInt8>, securityCode: some Collection<UInt8>, expiryMonth: Int, expiryYear: Int,
        cardholderName: String = "", network: CardNetwork? = nil
    ) throws {
        try self.init(
            number: number, securityCode: securityCode, expiry: YearMonth(year: expiryYear, month: expiryMonth),
            cardholderName: cardholderName, network: network)
    }

    /// Returns a number with `*` for the hidden digits.
    static func mask(_ number: some Collection<UInt8>) -> String { SensitiveData.truncated(number) }

    /// Seals the card data as a JSON text: `number`, `cvv`, `expiryMonth`, `expiryYear`, `cardholderName`.
    ///
    /// - Throws: `JWEError`.
    public func sealed(for recipient: JWERecipient) throws(JWEError) -> SealedCardData { try recipient.seal(text) }
}

/// Bytes written in place, up to the end of a buffer.
private struct WipedWriter {
    let buffer: UnsafeMutableRawBufferPointer
    var count = 0

    mutating func append(_ bytes: some Collection<UInt8>) throws(ClearCardDataError) {
        guard count + bytes.count <= buffer.count else { throw .count(count + bytes.count) }
        for byte in bytes {
            buffer[count] = byte
            count += 1
        }
    }
}

extension CardPaymentData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The masked number.
    public var description: String { masked }
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

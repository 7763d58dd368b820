public import Logging
public import SmartCard

/// The layers over a card's channel, in their one order: time limit, command chaining where the reader needs it, GET RESPONSE
/// (61xx), wrong Le (6Cxx), traffic log, recorder.
///
///     let channel = Stack(for: reader, logger: logger).over(card)
public struct Stack: Sendable {
    /// Whether 61xx and 6Cxx are what a card may answer.
    public enum StatusWords: Hashable, Sendable {
        /// As ISO/IEC 7816-4 has it: what is held back is fetched, and a wrong length mended.
        case ofISO7816
        /// As EMV has it for contactless cards: every response comes whole, and both are answers like any other, which the
        /// kernel judges (EMV Contactless Book B, 3.3.3; 61xx and 6Cxx belong to T=0, EMV Book 1, 9.3.1).
        case ofEMVContactless
    }

    /// Longer than any driver takes to give up.
    public static let longestExchange = Duration.seconds(60)

    private let statusWords: StatusWords
    private let longestCommand: Int?
    private let timeLimit: Duration?
    private let logger: Logger?
    private let record: RecorderLayer.Record?

    /// - Parameters:
    ///   - reader: has the card; the ``Model/longestCommand`` of its model counts, and of an unknown reader none.
    ///   - timeLimit: of an exchange at the transport; nil: none but the driver's.
    ///   - logger: where exchanges go at trace level, masked; see `TrafficLogLayer`.
    ///   - record: sees each exchange in the clear, as the caller sees it.
    public init(
        _ statusWords: StatusWords = .ofISO7816, for reader: any CardReader,
        timeLimit: Duration? = Stack.longestExchange, logger: Logger? = nil, record: RecorderLayer.Record? = nil
    ) {
        longestCommand = reader.model?.longestCommand
        (self.statusWords, self.timeLimit, self.logger, self.record) = (statusWords, timeLimit, logger, record)
    }

    public func over(_ transport: any CardChannel) -> any CardChannel {
        var channel = transport
        if let timeLimit { channel = TimeLimitLayer(channel, limit: timeLimit) }
        if let longestCommand { channel = CommandChainingLayer(channel, longestCommand: longestCommand) }
        if statusWords == .ofISO7816 { channel = WrongLeLayer(GetResponseLayer(channel)) }
        if let logger { channel = TrafficLogLayer(channel, logger: logger) }
        if let record { channel = RecorderLayer(channel, record: record) }
        return channel
    }
}

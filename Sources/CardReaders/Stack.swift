public import Logging
public import SmartCard

/// The layers over a card's channel, in their fixed order: time limit, command chaining if the reader needs it, GET
/// RESPONSE (61xx), wrong Le (6Cxx), traffic log, recorder.
///
///     let channel = Stack(for: reader, logger: logger).over(card)
public struct Stack: Sendable {
    /// The treatment of 61xx and 6Cxx.
    public enum StatusWords: Hashable, Sendable {
        /// As ISO/IEC 7816-4 requires: the remaining data is fetched, and a wrong length corrected.
        case ofISO7816
        /// As EMV requires for contactless cards: every response is complete.  Both statuses are ordinary answers for
        /// the kernel to judge (EMV Contactless Book B, 3.3.3; 61xx and 6Cxx belong to T=0, EMV Book 1, 9.3.1).
        case ofEMVContactless
    }

    /// A time limit beyond that of every driver.
    public static let longestExchange = Duration.seconds(60)

    private let statusWords: StatusWords
    private let longestCommand: Int?
    private let timeLimit: Duration?
    private let logger: Logger?
    private let record: RecorderLayer.Record?

    /// - Parameters:
    ///   - statusWords: the status words that the layers handle.
    ///   - reader: the reader that holds the card.  The ``Model/longestCommand`` of its model applies; an unknown
    ///     reader has no limit.
    ///   - timeLimit: the limit of an exchange at the transport; nil: only the driver's.
    ///   - logger: receives exchanges at trace level, masked; see `TrafficLogLayer`.
    ///   - record: sees each exchange unmasked, as the caller does.
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

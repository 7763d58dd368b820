public import Logging

/// Writes every exchange to a log at trace level, without card data.
///
/// The log contains a command's header and lengths, and its data only for commands that carry no cardholder data
/// (SELECT, GET PROCESSING OPTIONS, …).  It contains response data as BER-TLV with the values of
/// ``SensitiveData/exposure(of:in:)`` masked, and only the length of data that is not BER-TLV.
public struct TrafficLogLayer: CardChannel {
    private let base: any CardChannel
    private let logger: Logger

    public init(_ base: any CardChannel, logger: Logger) {
        self.base = base
        self.logger = logger
    }

    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        guard logger.logLevel <= .trace else { return try await base.transmit(command) }
        logger.trace("-> \(Self.text(command))")
        do {
            let response = try await base.transmit(command)
            logger.trace("<- \(Self.text(response, answering: command))")
            return response
        } catch {
            logger.trace("<- \(error)")
            throw error
        }
    }

    static func text(_ command: CommandAPDU) -> String {
        guard SensitiveData.showsData(of: command), !command.data.isEmpty else {
            return command.description
        }
        return [command.cla, command.ins, command.p1, command.p2].hex(separator: " ") + ", " + command.data.hex
            + (command.ne.map { ", Ne \($0)" } ?? "")
    }

    static func text(_ response: ResponseAPDU, answering command: CommandAPDU) -> String {
        SensitiveData.maskedTLV(response.data, answering: command).map { "\($0), \(response.status)" }
            ?? response.description
    }
}

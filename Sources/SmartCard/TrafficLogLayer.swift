public import Logging

/// Writes every exchange to a log at trace level, without card data.
///
/// Of a command the header and lengths are written, and the data only where it is known to hold none of the
/// cardholder's (SELECT, GET PROCESSING OPTIONS, …).  Response data is written as BER-TLV with the values of
/// ``SensitiveData/exposure(of:in:)`` masked; data that is not BER-TLV is given by its length.
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
            logger.trace("<- \(Self.text(response))")
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

    static func text(_ response: ResponseAPDU) -> String {
        SensitiveData.maskedTLV(response.data).map { "\($0), \(response.status)" } ?? response.description
    }
}

import Waiting

/// Fetches the rest of a 61xx response by GET RESPONSE and joins the parts (ISO/IEC 7816-4, 5.3.4 and 11.8.1).
///
/// It stops at 65,536 bytes, the most that one APDU can carry, or after 256 rounds.
public struct GetResponseLayer: CardChannel {
    private let base: any CardChannel

    public init(_ base: any CardChannel) { self.base = base }

    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        var response = try await base.transmit(command)
        var data = response.data
        let cla = command.interindustryClass
        var rounds = 0
        while case .moreData = response.status {
            rounds += 1
            guard rounds <= 256, data.count <= 65_536 else {
                throw CardError(.malformedAnswer, "61xx without end")
            }
            response = try await base.transmit(.getResponse(cla: cla, ne: response.status.ne))
            if case .wrongLe = response.status {
                response = try await base.transmit(.getResponse(cla: cla, ne: response.status.ne))
                // Passed on, this status would make the layer above repeat the command.
                if case .wrongLe = response.status { throw CardError(.malformedAnswer, "6Cxx without end") }
            }
            data += response.data
        }
        return ResponseAPDU(data: data, status: response.status)
    }
}

/// Repeats a command that the card answered with 6Cxx, with the length in SW2 (ISO/IEC 7816-4, 5.1.3).
public struct WrongLeLayer: CardChannel {
    private let base: any CardChannel

    public init(_ base: any CardChannel) { self.base = base }

    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let response = try await base.transmit(command)
        guard case .wrongLe = response.status, response.data.isEmpty else { return response }
        return try await base.transmit(command.with(ne: response.status.ne))
    }
}

/// Shows each exchange to an observer, which cannot change it.
public struct RecorderLayer: CardChannel {
    /// An event of an exchange, shown as it happens.
    public enum Event: Sendable {
        /// A command is about to be sent.
        case command(CommandAPDU)
        case response(ResponseAPDU)
        /// No response came.
        case failure(any Error)
    }

    public typealias Record = @Sendable (Event) async -> Void

    private let base: any CardChannel
    private let record: Record

    public init(_ base: any CardChannel, record: @escaping Record) {
        self.base = base
        self.record = record
    }

    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        await record(.command(command))
        do {
            let response = try await base.transmit(command)
            await record(.response(response))
            return response
        } catch {
            await record(.failure(error))
            throw error
        }
    }
}

/// Cancels an exchange that exceeds a time limit.
///
/// Drivers have their own limits, but a service that hangs has none.
public struct TimeLimitLayer: CardChannel {
    private let base: any CardChannel
    private let limit: Duration

    public init(_ base: any CardChannel, limit: Duration) {
        self.base = base
        self.limit = limit
    }

    /// - Throws: ``CardError`` of kind `readerTimeout` after the limit; the error of the layer below.
    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try await withTimeLimit(limit) { try await base.transmit(command) }
    }
}

/// Runs `body` and cancels it after `limit`.
///
/// - Throws: ``CardError`` of kind `readerTimeout` after the limit.
public func withTimeLimit<Result: Sendable>(
    _ limit: Duration, _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
    try await withTimeLimit(limit, or: CardError(.readerTimeout, "no answer within \(limit)"), body)
}

extension StatusWord {
    /// The length in SW2 of 61xx or 6Cxx.
    fileprivate var ne: Int { sw2 == 0 ? 256 : Int(sw2) }
}

extension CommandAPDU {
    /// The class of a GET RESPONSE for this command: its logical channel, without chaining and secure messaging
    /// (ISO/IEC 7816-4, 5.4.1); FF for a reader's own commands, as the ACR122U requires; 00 for other proprietary
    /// classes (EMV Book 1, 9.3.1.3).
    fileprivate var interindustryClass: UInt8 {
        switch cla {
        case 0x00...0x1F: cla & 0x03
        case 0x40...0x7F: cla & 0x4F
        case 0xFF: 0xFF
        default: 0x00
        }
    }
}

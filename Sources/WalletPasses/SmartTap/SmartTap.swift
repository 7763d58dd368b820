public import SmartCard

/// Asks Google's wallet for passes: a conversation of Smart Tap 2.1, as a value without I/O.
///
/// It begins where ``AppleVAS`` ends with ``AppleVAS/Outcome/smartTap(_:)``.  Call ``next(_:)`` without a response, then with
/// the response to each command, until it has finished.  A phone hands over the passes of one collector in a tap (kormax).
public struct SmartTap: Sendable {
    public enum Outcome: Hashable, Sendable {
        /// Passes and customers, in the phone's order.
        case read([SmartTapObject])
        /// A status word that ends the conversation: no pass, a locked phone, an error.
        case refused(SmartTapStatus)
        /// A session status that ends it.
        case rejected(SmartTapSessionStatus?)
        /// The phone breaks the protocol.
        case malformed(SmartTapFault)
    }

    public enum Step: Hashable, Sendable {
        case send(CommandAPDU)
        case finished(Outcome)
    }

    /// The place where a conversation begins.
    public enum Beginning: Sendable {
        /// After SELECT of OSE.VAS.01, with the phone's answer.
        case selected(ResponseAPDU)
        /// In a session in which another collector has asked: with SELECT of Smart Tap, for a new nonce.
        case again
    }

    /// A000000476D0000111: Smart Tap 2.
    public static let applicationName: [UInt8] = [0xA0, 0x00, 0x00, 0x04, 0x76, 0xD0, 0x00, 0x01, 0x11]
    /// The most bytes of an answer, before and after inflating.
    public static let maximumLength = 1 << 16
    /// The most parts of an answer.
    static let maximumParts = 256
    /// The most times that a command is sent.
    static let maximumTries = 3
    /// The latest version, which this type speaks.
    static let version: UInt16 = 0x0001

    private enum State {
        case new, selecting
        case negotiating(deviceNonce: [UInt8], signature: [UInt8])
        case reading(SmartTapChannel)
        case over
    }

    private let request: SmartTapRequest
    private let secrets: SmartTapSecrets
    private let beginning: Beginning
    private var state = State.new
    private var session: SmartTapRecords.Session
    private var tries = 0
    private var answer: [UInt8] = []
    private var parts = 0

    public init(_ request: SmartTapRequest, from beginning: Beginning, secrets: SmartTapSecrets) {
        (self.request, self.beginning, self.secrets) = (request, beginning, secrets)
        // proxmark3 begins with 1, kormax with 0; phones take both.
        session = SmartTapRecords.Session(identifier: secrets.sessionID, sequence: 1)
    }

    /// Takes the phone's response; nil at the start.
    public mutating func next(_ response: ResponseAPDU?) -> Step {
        do throws(SmartTapFault) {
            switch (state, response) {
            case (.new, nil): return try begin()
            case (.selecting, let response?): return try selected(response)
            case (.negotiating(let nonce, let signature), let response?):
                return try negotiated(response, nonce, signature)
            case (.reading(let channel), let response?): return try read(response, channel)
            default: throw .order
            }
        } catch {
            return finish(.malformed(error))
        }
    }

    private mutating func finish(_ outcome: Outcome) -> Step {
        (state, answer) = (.over, [])
        return .finished(outcome)
    }

    // MARK: SELECT

    private mutating func begin() throws(SmartTapFault) -> Step {
        if case .selected(let response) = beginning, let nonce = Self.nonce(in: response.data) {
            return try negotiate(nonce)
        }
        state = .selecting
        return .send(.select(Self.applicationName))
    }

    /// The nonce in the answer to SELECT of OSE.VAS.01, if it permits to go on without another SELECT: DF62, b0.
    private static func nonce(in data: [UInt8]) -> [UInt8]? {
        guard let objects = try? TLVList(data), let template = objects.first(where: { $0.tag == 0x6F })?.children else {
            return nil
        }
        let directory =
            template.first { $0.tag == 0xA5 }?.children.first { $0.tag == 0xBF0C }?.children
            .filter { $0.tag == 0x61 }.map(\.children) ?? []
        for entry in directory where entry.value(of: 0x4F)?.elementsEqual(applicationName) == true {
            let properties = entry.first { $0.tag == 0x73 }?.children
            guard let capabilities = properties?.value(of: 0xDF62)?.first, capabilities & 0x01 != 0 else { return nil }
            // Newer phones give the nonce beside the directory, in C2.
            return [properties?.value(of: 0xDF6E), template.value(of: 0xC2)].lazy.compactMap(\.self)
                .first { $0.count == 32 }.map { Array($0) }
        }
        return nil
    }

    private mutating func selected(_ response: ResponseAPDU) throws(SmartTapFault) -> Step {
        guard response.status == .success else { return finish(.refused(SmartTapStatus(response.status))) }
        // Least version, greatest version, record mdn.
        guard response.data.count > 4 else { throw .missing(.selection) }
        let least = UInt16(response.data[0]) << 8 | UInt16(response.data[1])
        guard least <= Self.version else { return finish(.refused(.unsupportedVersion)) }
        let records = try SmartTapRecords.records(Array(response.data.dropFirst(4)), at: .selection)
        guard let nonce = SmartTapRecords.payload("mdn", in: records), nonce.count == 33 else { throw .missing(.nonce) }
        return try negotiate(Array(nonce.dropFirst()))
    }

    // MARK: NEGOTIATE SECURE CHANNEL

    private func signedData(_ deviceNonce: [UInt8]) -> [UInt8] {
        SmartTapChannel.signedData(
            readerNonce: secrets.readerNonce, deviceNonce: deviceNonce, collectorID: request.collectorID,
            readerKey: secrets.publicKey)
    }

    private mutating func negotiate(_ deviceNonce: [UInt8]) throws(SmartTapFault) -> Step {
        // A signature in DER has at most 72 bytes.
        guard let signature = try? request.sign(signedData(deviceNonce)), (8...72).contains(signature.count) else {
            throw .signature
        }
        state = .negotiating(deviceNonce: deviceNonce, signature: signature)
        tries = 1
        return negotiation(signature)
    }

    private func negotiation(_ signature: [UInt8]) -> Step {
        let data = request.negotiation(
            session, readerNonce: secrets.readerNonce, readerKey: secrets.publicKey, signature: signature)
        return .send(CommandAPDU(unchecked: (0x90, 0x53, 0x00, 0x00), data: data, ne: 256))
    }

    private mutating func negotiated(
        _ response: ResponseAPDU, _ nonce: [UInt8], _ signature: [UInt8]
    ) throws(SmartTapFault) -> Step {
        let status = SmartTapStatus(response.status)
        switch status {
        case .success, .preSignedAuthentication: break
        case .transient where again(after: nil): return negotiation(signature)
        default: return finish(.refused(status))
        }
        let outer = try SmartTapRecords.records(response.data, at: .negotiation)
        guard let nested = SmartTapRecords.payload("nrs", in: outer) else { throw .missing(.negotiation) }
        let records = try SmartTapRecords.records(nested, at: .negotiation)
        let heard = try SmartTapRecords.session(in: records)
        switch try judge(heard) {
        case .accepted: break
        case .again: return negotiation(signature)
        case .rejected(let status): return finish(.rejected(status))
        }
        guard let key = SmartTapRecords.payload("dpk", in: records) else { throw .missing(.devicePublicKey) }
        let channel = try SmartTapChannel(
            secrets.ephemeralKey, deviceKey: key, signedData: signedData(nonce), signature: signature)
        state = .reading(channel)
        session.sequence = heard.sequence &+ 1
        tries = 1
        return service()
    }

    /// Goes on with the next sequence number, unless a command was sent too often: the last response's and one more; where no
    /// response told one, the request's and two more, since a phone counts its own (proxmark3, `cmdhfgst.c`).
    private mutating func again(after heard: UInt8?) -> Bool {
        guard tries < Self.maximumTries else { return false }
        tries += 1
        session.sequence = heard.map { $0 &+ 1 } ?? session.sequence &+ 2
        return true
    }

    private enum Verdict {
        case accepted, again
        case rejected(SmartTapSessionStatus?)
    }

    private mutating func judge(_ heard: SmartTapRecords.Session) throws(SmartTapFault) -> Verdict {
        guard heard.identifier == session.identifier else { throw .otherSession }
        let status = SmartTapSessionStatus(rawValue: heard.status)
        if status == .ok { return .accepted }
        return status?.wantsRetry == true && again(after: heard.sequence) ? .again : .rejected(status)
    }

    // MARK: GET SMART TAP DATA

    private mutating func service() -> Step {
        (answer, parts) = ([], 0)
        return .send(CommandAPDU(unchecked: (0x90, 0x50, 0x00, 0x00), data: request.service(session), ne: 256))
    }

    private mutating func read(_ response: ResponseAPDU, _ channel: SmartTapChannel) throws(SmartTapFault) -> Step {
        let status = SmartTapStatus(response.status)
        switch status {
        case .success, .preSignedAuthentication, .moreData: break
        case .transient where again(after: nil): return service()
        default: return finish(.refused(status))
        }
        answer += response.data
        parts += 1
        guard answer.count <= Self.maximumLength, parts <= Self.maximumParts else { throw .tooLong }
        if status == .moreData {
            // GET ADDITIONAL DATA; the parts are one message.
            return .send(CommandAPDU(unchecked: (0x90, 0xC0, 0x00, 0x00), ne: 256))
        }
        let outer = try SmartTapRecords.records(answer, at: .answer)
        guard let nested = SmartTapRecords.payload("srs", in: outer) else { throw .missing(.answer) }
        let records = try SmartTapRecords.records(nested, at: .answer)
        switch try judge(SmartTapRecords.session(in: records)) {
        case .accepted: break
        case .again: return service()
        case .rejected(let status): return finish(.rejected(status))
        }
        guard let bundle = SmartTapRecords.payload("reb", in: records), let flags = bundle.first else {
            throw .missing(.bundle)
        }
        // b0 encrypted, b1 compressed.
        guard flags & 0x01 != 0 else { throw .notEncrypted }
        var clear = try channel.open(Array(bundle.dropFirst()))
        defer { clear.wipe() }
        return finish(.read(try SmartTapObject.objects(inBundle: clear, isCompressed: flags & 0x02 != 0)))
    }
}

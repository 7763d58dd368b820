public import SmartCard
import Synchronization

/// The chip of a travel document (ICAO 9303-10 and 9303-11): files behind Basic Access Control or PACE, and secure
/// messaging.
///
/// It is written from the specification, apart from the reader's side.
public final class PassportCard: VirtualCard {
    /// The contents of a chip.
    public struct Configuration: Sendable {
        /// The fields of the machine readable zone that the key is of, with their check digits: 24 characters or more.
        public var keyInformation: String
        /// The elementary files of the application by file identifier.
        public var files: [UInt16: [UInt8]]
        /// The elementary files of the master file, which anybody may read.
        public var freeFiles: [UInt16: [UInt8]]
        /// The most bytes that READ BINARY returns, as a chip with a small buffer has it.
        public var mostRead = 65_536
        /// False for a chip that answers 6A86 to a short identifier.
        public var knowsShortIdentifiers = true
        public var fault: Fault?
        /// The variant of PACE that the chip offers; nil: it has none.
        var pace: PassportPACE.Offer?
        /// EF.CardSecurity in the master file, which is read after PACE (ICAO 9303-10, 3.11.4).
        var cardSecurity: [UInt8]?
        /// The digits that PACE takes instead of the zone.
        var numbers: [Number: String] = [:]
        /// The wrong tries after which a number is blocked, and the status word that says so; nil: no end.
        var tries: (count: Int, blocked: StatusWord)?
        /// The time that the chip takes for an answer.
        var delay = Duration.zero
        var hasBasicAccessControl = true
        /// The private key that INTERNAL AUTHENTICATE proves; nil: the chip does not have the command.
        var activeAuthenticationKey: RSAKey?
        /// The chip's side of chip authentication; nil: the chip does not have it.
        var chipAuthentication: PassportChipAuthentication?

        public init(keyInformation: String, files: [UInt16: [UInt8]], freeFiles: [UInt16: [UInt8]] = [:]) {
            (self.keyInformation, self.files, self.freeFiles) = (keyInformation, files, freeFiles)
        }
    }

    /// A lie of the chip, or of whoever stands between.  Responses of a session are counted from 1, chip authentication
    /// included.
    public enum Fault: Hashable, Sendable {
        /// A bit of the MAC of the nth protected response is wrong.
        case wrongMAC(response: Int)
        /// The nth protected response is the one before once more.
        case replay(response: Int)
        /// The nth protected response has no protection.
        case bareStatus(response: Int, StatusWord)
        /// The chip forgets its session after the nth protected response.
        case endsSession(response: Int)
        /// The card proves no key in EXTERNAL AUTHENTICATE.
        case doesNotKnowKey
        /// The card answers 6B00 to a read past the end of a file, instead of returning the bytes before the end.
        case refusesBeyondEnd
    }

    private struct State {
        var isApplicationSelected = false
        var file: [UInt8]?
        var challenge: [UInt8]?
        var session: PassportSession?
        var pace: PassportPACE?
        /// The number that PACE was begun with.
        var number: Number?
        /// True after MSE:Set AT for chip authentication.
        var isChipAuthenticationSelected = false
        /// The session that begins after the next protected response.
        var successor: PassportSession?

        mutating func endSession() { (session, file, isChipAuthenticationSelected) = (nil, nil, false) }
    }

    public let radio: VirtualCardRadio
    private let configuration: Configuration
    private let lie: (@Sendable (_ command: CommandAPDU, _ answer: ResponseAPDU) -> ResponseAPDU)?
    private let state = Mutex(State())
    /// The wrong tries of each number one after the other, which a chip does not forget without a field.
    private let wrongTries = Mutex<[Number: Int]>([:])

    public convenience init(
        _ configuration: Configuration,
        radio: VirtualCardRadio = .typeA(
            uid: [0x08, 0x4A, 0x5B, 0x6C], atqa: [0x00, 0x08], sak: 0x20, ats: [0x05, 0x78, 0x77, 0x80, 0x02])
    ) {
        self.init(configuration, radio: radio, lie: nil)
    }

    private init(
        _ configuration: Configuration, radio: VirtualCardRadio,
        lie: (@Sendable (_ command: CommandAPDU, _ answer: ResponseAPDU) -> ResponseAPDU)?
    ) {
        (self.configuration, self.radio, self.lie) = (configuration, radio, lie)
    }

    /// Returns a chip that opens as this one does, and then answers something else.
    ///
    /// - Parameter lie: takes a command of a session, and the answer to it, both in the clear.  The chip protects what it
    ///   returns.
    public func lying(
        _ lie: @escaping @Sendable (_ command: CommandAPDU, _ answer: ResponseAPDU) -> ResponseAPDU
    ) -> PassportCard {
        PassportCard(configuration, radio: radio, lie: lie)
    }

    public func reset() { state.withLock { $0 = State() } }

    public func exchange(_ command: [UInt8]) -> [UInt8]? {
        guard let command = try? CommandAPDU(command) else { return ResponseAPDU(status: 0x6700).bytes }
        return state.withLock { state in
            guard command.cla & 0x0C == 0x0C else {
                // A command without protection ends the session (9303-11, 9.8.8).
                if state.session != nil { state.endSession() }
                return respond(to: command, &state, isProtected: false).bytes
            }
            return respondProtected(to: command, &state).bytes
        }
    }

    public func processingTime(of command: [UInt8]) -> Duration { configuration.delay }

    // MARK: Commands

    private func respond(to command: CommandAPDU, _ state: inout State, isProtected: Bool) -> ResponseAPDU {
        switch (command.ins, command.p1) {
        case (0xA4, 0x04): ResponseAPDU(status: selectApplication(command, &state))
        case (0xA4, 0x02): ResponseAPDU(status: selectFile(command, &state, isProtected))
        case (0x84, _): challenge(&state)
        case (0x82, _): authenticate(command, &state)
        case (0x88, _): authenticateActively(command, isProtected: isProtected)
        case (0x22, 0xC1) where command.p2 == 0xA4: ResponseAPDU(status: selectPACE(command, &state))
        case (0x22, 0x41): ResponseAPDU(status: selectChipAuthentication(command, &state, isProtected))
        case (0x86, _) where isProtected: authenticateChip(command, &state)
        case (0x86, _): proceedWithPACE(command, &state)
        case (0xB0, _): readBinary(command, &state, isProtected)
        case (0xB1, _): readOdd(command, &state)
        default: ResponseAPDU(status: 0x6D00)
        }
    }

    private func selectApplication(_ command: CommandAPDU, _ state: inout State) -> StatusWord {
        guard command.p2 == 0x0C, command.data == [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01] else { return 0x6A82 }
        (state.isApplicationSelected, state.file) = (true, nil)
        return .success
    }

    /// The file, and the status word where it may not be read.
    private func file(_ identifier: UInt16, _ state: State, _ isProtected: Bool) -> Result<[UInt8], Status> {
        if !state.isApplicationSelected {
            if identifier == 0x011D, let file = configuration.cardSecurity {
                return isProtected ? .success(file) : .failure(Status(0x6982))
            }
            return configuration.freeFiles[identifier].map { .success($0) } ?? .failure(Status(0x6A82))
        }
        guard isProtected else { return .failure(Status(0x6982)) }
        return configuration.files[identifier].map { .success($0) } ?? .failure(Status(0x6A82))
    }

    private struct Status: Error {
        let word: StatusWord
        init(_ word: StatusWord) { self.word = word }
    }

    private func selectFile(_ command: CommandAPDU, _ state: inout State, _ isProtected: Bool) -> StatusWord {
        guard command.p2 == 0x0C, command.data.count == 2 else { return 0x6A86 }
        switch file(UInt16(command.data[0]) << 8 | UInt16(command.data[1]), state, isProtected) {
        case .success(let bytes):
            state.file = bytes
            return .success
        case .failure(let status): return status.word
        }
    }

    private func readBinary(_ command: CommandAPDU, _ state: inout State, _ isProtected: Bool) -> ResponseAPDU {
        guard let ne = command.ne, command.data.isEmpty else { return ResponseAPDU(status: 0x6700) }
        var offset = Int(command.p1) << 8 | Int(command.p2)
        if command.p1 & 0x80 != 0 {
            guard configuration.knowsShortIdentifiers else { return ResponseAPDU(status: 0x6A86) }
            switch file(0x0100 | UInt16(command.p1 & 0x1F), state, isProtected) {
            case .success(let bytes): state.file = bytes
            case .failure(let status): return ResponseAPDU(status: status.word)
            }
            offset = Int(command.p2)
        }
        return read(state.file, offset, ne)
    }

    /// The offset is in object 54, and the bytes in object 53 (ISO/IEC 7816-4, 11.3.3).
    private func readOdd(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let ne = command.ne, let object = (try? TLVList(command.data, padding: []))?.first, object.tag == 0x54,
            object.value.count <= 3
        else { return ResponseAPDU(status: 0x6A80) }
        // As many bytes as fit beside their header.
        let room = ne - (ne > 259 ? 4 : ne > 129 ? 3 : 2)
        let response = read(state.file, object.value.reduce(0) { $0 << 8 | Int($1) }, max(0, room))
        guard !response.data.isEmpty else { return response }
        return ResponseAPDU(data: TLVTag(0x53).encode(response.data), status: response.status)
    }

    private func read(_ file: [UInt8]?, _ offset: Int, _ ne: Int) -> ResponseAPDU {
        guard let file else { return ResponseAPDU(status: 0x6986) }
        let beyond = offset + ne > file.count
        guard offset < file.count, !beyond || configuration.fault != .refusesBeyondEnd else {
            return ResponseAPDU(status: 0x6B00)
        }
        let data = file.dropFirst(offset).prefix(min(ne, configuration.mostRead))
        return ResponseAPDU(data: Array(data), status: offset + data.count == file.count && beyond ? 0x6282 : .success)
    }

    // MARK: Basic Access Control

    private func challenge(_ state: inout State) -> ResponseAPDU {
        guard state.isApplicationSelected, configuration.hasBasicAccessControl else {
            return ResponseAPDU(status: 0x6985)
        }
        let challenge = (0..<8).map { _ in UInt8.random(in: 0...255) }
        state.challenge = challenge
        return ResponseAPDU(data: challenge, status: .success)
    }

    /// 9303-11, 4.3.1, steps 2 and 3.
    private func authenticate(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let challenge = state.challenge, command.data.count == 40 else { return ResponseAPDU(status: 0x6985) }
        state.challenge = nil
        let seed = RSAKey.sha1(Array(configuration.keyInformation.utf8))?.prefix(16) ?? []
        let cipher = PassportCipher.tripleDES
        guard let encryption = cipher.key(Array(seed), 1), let authentication = cipher.key(Array(seed), 2),
            let clear = cipher.crypt(Array(command.data.prefix(32)), key: encryption, encrypting: false),
            cipher.mac(cipher.padded(Array(command.data.prefix(32))), key: authentication)
                == Array(command.data.suffix(8)), Array(clear[8..<16]) == challenge
        else { return ResponseAPDU(status: 0x6300) }
        let half = (0..<16).map { _ in UInt8.random(in: 0...255) }
        var answer = challenge + clear[0..<8] + half
        if configuration.fault == .doesNotKnowKey { answer.reverse() }
        guard let cryptogram = cipher.crypt(answer, key: encryption, encrypting: true),
            let mac = cipher.mac(cipher.padded(cryptogram), key: authentication)
        else { return ResponseAPDU(status: 0x6F00) }
        // 9303-11, 9.8.6.3: the counter begins with the ends of both challenges.
        state.session = PassportSession(
            cipher, secret: zip(clear[16...], half).map { $0 ^ $1 }, counter: challenge.suffix(4) + clear[4..<8])
        return ResponseAPDU(data: cryptogram + mac, status: .success)
    }

    // MARK: Active authentication

    /// INTERNAL AUTHENTICATE with a challenge of 8 bytes: a signature with message recovery over a nonce of the chip and the
    /// challenge (9303-11, 6.1.2; ISO/IEC 9796-2, scheme 1, with SHA-1).
    private func authenticateActively(_ command: CommandAPDU, isProtected: Bool) -> ResponseAPDU {
        guard let key = configuration.activeAuthenticationKey else { return ResponseAPDU(status: 0x6D00) }
        guard isProtected else { return ResponseAPDU(status: 0x6982) }
        guard command.data.count == 8 else { return ResponseAPDU(status: 0x6700) }
        let nonce = (0..<key.modulus.count - 22).map { _ in UInt8.random(in: 0...255) }
        guard let signature = key.sign(recoverable: nonce, rest: command.data) else {
            return ResponseAPDU(status: 0x6F00)
        }
        return ResponseAPDU(data: signature, status: .success)
    }

    // MARK: Chip authentication

    /// MSE:Set AT, and MSE:Set KAT, which is the whole of the protocol with triple DES (9303-11, 6.2.4).
    private func selectChipAuthentication(
        _ command: CommandAPDU, _ state: inout State, _ isProtected: Bool
    ) -> StatusWord {
        guard let authentication = configuration.chipAuthentication else { return 0x6D00 }
        guard isProtected else { return 0x6982 }
        switch command.p2 {
        case 0xA4:
            let status = authentication.select(command)
            state.isChipAuthenticationSelected = status == .success
            return status
        case 0xA6:
            state.successor = authentication.agree(setTemplate: command)
            return state.successor == nil ? 0x6A80 : .success
        default: return 0x6A86
        }
    }

    /// GENERAL AUTHENTICATE, the second step with AES (9303-11, 6.2.4.2).
    private func authenticateChip(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let authentication = configuration.chipAuthentication else { return ResponseAPDU(status: 0x6D00) }
        guard state.isChipAuthenticationSelected else { return ResponseAPDU(status: 0x6985) }
        state.isChipAuthenticationSelected = false
        state.successor = authentication.agree(generalAuthenticate: command)
        return state.successor == nil
            ? ResponseAPDU(status: 0x6A80) : ResponseAPDU(data: [0x7C, 0x00], status: .success)
    }

    // MARK: PACE

    /// MSE:Set AT (9303-11, 4.4.4.1).
    private func selectPACE(_ command: CommandAPDU, _ state: inout State) -> StatusWord {
        state.pace = nil
        guard let offer = configuration.pace else { return 0x6D00 }
        guard let objects = try? TLVList(command.data, padding: []),
            objects[0x80].map({ Array($0.value) }) == offer.identifier,
            objects[0x84].map({ $0.value.elementsEqual([UInt8(truncatingIfNeeded: offer.parameters)]) }) ?? true
        else { return 0x6A80 }
        let reference = objects[0x83].flatMap { $0.value.count == 1 ? $0.value.first : nil }
        state.number = reference.flatMap(Number.init)
        let password =
            reference == 1
            ? RSAKey.sha1(Array(configuration.keyInformation.utf8))
            : state.number.flatMap { configuration.numbers[$0] }.map { Array($0.utf8) }
        guard let password, let pace = PassportPACE(offer, password: password) else { return 0x6A88 }
        let status = triesLeft(state.number)
        if status != configuration.tries?.blocked { state.pace = pace }
        return status
    }

    /// 63Cx where wrong tries of a number have left x (ISO/IEC 7816-4, 5.6), and the word for a blocked one after the last.
    private func triesLeft(_ number: Number?) -> StatusWord {
        guard let number, let tries = configuration.tries, let wrong = wrongTries.withLock({ $0[number] }) else {
            return .success
        }
        return wrong < tries.count ? StatusWord(rawValue: 0x63C0 | UInt16(tries.count - wrong)) : tries.blocked
    }

    /// GENERAL AUTHENTICATE (9303-11, 4.4.4.2), the last one without chaining.
    private func proceedWithPACE(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let offer = configuration.pace else { return ResponseAPDU(status: 0x6D00) }
        guard var pace = state.pace else { return ResponseAPDU(status: 0x6985) }
        let response = pace.respond(to: command)
        state.pace = response.status == .success ? pace : nil
        if let secret = pace.secret {
            (state.pace, state.session) = (nil, PassportSession(offer.cipher, secret: secret))
            if let number = state.number { wrongTries.withLock { $0[number] = nil } }
        }
        guard response.status == 0x6300, let number = state.number, configuration.tries != nil else { return response }
        wrongTries.withLock { $0[number, default: 0] += 1 }
        return ResponseAPDU(status: triesLeft(number))
    }

    // MARK: Secure messaging

    /// 9303-11, 9.8.
    private func respondProtected(to command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard var session = state.session else { return ResponseAPDU(status: 0x6982) }
        session.count()
        guard let plain = Self.unprotect(command, session) else {
            state.endSession()
            return ResponseAPDU(status: 0x6988)
        }
        let truth = respond(to: plain, &state, isProtected: true)
        let response = lie?(plain, truth) ?? truth
        session.count()
        session.responses += 1
        var bytes = Self.protect(response, session, isOdd: !command.ins.isMultiple(of: 2))
        switch configuration.fault {
        case .wrongMAC(session.responses): bytes[bytes.count - 3] ^= 0x01
        case .replay(session.responses) where !session.last.isEmpty: bytes = session.last
        case .bareStatus(session.responses, let status): bytes = [status.sw1, status.sw2]
        default: break
        }
        session.last = bytes
        state.session = state.successor?.following(session) ?? session
        state.successor = nil
        if configuration.fault == .endsSession(response: session.responses) { state.endSession() }
        return (try? ResponseAPDU(bytes)) ?? response
    }

    private static func unprotect(_ command: CommandAPDU, _ session: PassportSession) -> CommandAPDU? {
        guard let list = try? TLVList(command.data, padding: []), let mac = list[0x8E] else { return nil }
        let cipher = session.cipher
        let objects = Array(command.data[..<mac.offset])
        let message =
            cipher.padded([command.cla, command.ins, command.p1, command.p2])
            + (objects.isEmpty ? [] : cipher.padded(objects))
        guard session.mac(message) == Array(mac.value) else { return nil }
        var data: [UInt8] = []
        if let cryptogram = list[0x87]?.value.dropFirst() ?? list[0x85]?.value {
            guard let clear = session.crypt(Array(cryptogram), encrypting: false), let end = clear.lastIndex(of: 0x80)
            else { return nil }
            data = Array(clear[..<end])
        }
        let le = list[0x97].map { $0.value.reduce(0) { $0 << 8 | Int($1) } }
        return try? CommandAPDU(
            cla: command.cla & 0xF0, ins: command.ins, p1: command.p1, p2: command.p2, data: data,
            ne: le == 0 ? (list[0x97]?.value.count == 1 ? 256 : 65_536) : le, lengthCoding: command.lengthCoding)
    }

    private static func protect(_ response: ResponseAPDU, _ session: PassportSession, isOdd: Bool) -> [UInt8] {
        var objects: [UInt8] = []
        if !response.data.isEmpty {
            let cryptogram = session.crypt(session.cipher.padded(response.data), encrypting: true) ?? []
            objects = isOdd ? TLVTag(0x85).encode(cryptogram) : TLVTag(0x87).encode([0x01] + cryptogram)
        }
        objects += TLVTag(0x99).encode([response.status.sw1, response.status.sw2])
        let mac = session.mac(session.cipher.padded(objects)) ?? []
        return objects + TLVTag(0x8E).encode(mac) + [response.status.sw1, response.status.sw2]
    }
}

public import SmartCard

/// Asks Apple Wallet for passes: a transaction of Value Added Services 1.0, as a value without I/O.
///
/// Call ``next(_:)`` without a response, then with the response to each command, until it has finished.  Where the mode goes
/// on to payment, send SELECT of `2PAY.SYS.DDF01` in the same ISO-DEP session, without DESELECT between.  Where a pass
/// was read and no payment follows, end with DESELECT and switch the field off, so that the phone shows that it is done.
public struct AppleVAS: Sendable {
    /// The purpose of a tap.
    public enum Mode: UInt8, Hashable, Sendable, CaseIterable {
        // The raw values are those of the last two bits of 9F26.
        /// Passes if the phone has them, else payment.
        case passOrPayment = 0
        case passAndPayment = 1
        case passOnly = 2
        case paymentOnly = 3
    }

    public enum TerminalType: UInt8, Hashable, Sendable {
        case payment = 0
        case transit = 1
    }

    /// The end of a merchant's GET DATA, by its status word.
    public enum Status: Hashable, Sendable {
        /// A pass, or nothing in return for a URL.
        case success
        case passNotFound
        /// The phone is locked, or the pass waits for its holder: tap again.
        case notActivated
        case wrongParameters
        case wrongLength
        /// The phone asks its holder for something: tap again.
        case userInterventionRequired
        case incorrectData
        case unsupportedVersion
        /// 9000 without a pass.
        case noPass
        /// A status word without a meaning for VAS.
        case other(StatusWord)
    }

    /// The answer for one merchant.
    public struct Entry: Hashable, Sendable {
        public let merchant: VASMerchant
        public let status: Status
        /// The encrypted pass; nil without success, and for a merchant whose URL alone was sent.
        public let cryptogram: VASCryptogram?
        /// 9F2A, which identifies the customer to the merchant; nil from today's phones, which leave it empty.
        public let mobileToken: PassData?
    }

    public enum Outcome: Hashable, Sendable {
        /// The merchants that were asked, in order.  After one that waits for its holder, none is asked.
        case read([Entry])
        /// The application is Google's: its answer to SELECT, for Smart Tap.
        case smartTap(ResponseAPDU)
        /// A plain card, or a phone that has no passes, does not want to show them, or is of another version.
        case noPasses(Absence)
        /// The phone breaks the protocol.
        case malformed(TLVError?)
    }

    /// Why there are no passes.
    public enum Absence: Hashable, Sendable {
        case noApplication(StatusWord)
        case otherWallet
        case otherVersion([UInt8])
        case notWilling
    }

    /// A step of the transaction.
    public enum Step: Hashable, Sendable {
        case send(CommandAPDU)
        case finished(Outcome)
    }

    private enum State: Hashable {
        case new, selecting, asking(Int), over
    }

    /// The name of the application of Apple's and Google's wallets: OSE.VAS.01.
    public static let applicationName = Array("OSE.VAS.01".utf8)
    /// VAS 1.0, 9F21 and 9F22.
    static let version: [UInt8] = [0x01, 0x00]

    private let merchants: [VASMerchant]
    private let mode: Mode
    private let terminalType: TerminalType
    private var entries: [Entry] = []
    private var state = State.new

    /// Creates the transaction.
    ///
    /// - Parameters:
    ///   - merchants: in the order of asking.  In mode ``Mode/passOnly``, a phone shows one pass a tap: the first that it
    ///     has.
    ///   - mode: the purpose of the tap.
    ///   - terminalType: the kind of terminal that the phone is told.
    public init(_ merchants: [VASMerchant], mode: Mode, terminalType: TerminalType = .payment) {
        (self.merchants, self.mode, self.terminalType) = (merchants, mode, terminalType)
    }

    /// Takes the phone's response; nil at the start.
    public mutating func next(_ response: ResponseAPDU?) -> Step {
        switch (state, response) {
        case (.new, nil):
            state = .selecting
            return .send(.select(Self.applicationName))
        case (.selecting, let response?): return select(response)
        case (.asking(let index), let response?): return take(response, index)
        default: return finish(.malformed(nil))
        }
    }

    private mutating func finish(_ outcome: Outcome) -> Step {
        state = .over
        return .finished(outcome)
    }

    // MARK: SELECT

    private mutating func select(_ response: ResponseAPDU) -> Step {
        guard response.status == .success else { return finish(.noPasses(.noApplication(response.status))) }
        let objects: TLVList
        do throws(TLVError) { objects = try TLVList(response.data) } catch { return finish(.malformed(error)) }
        guard let template = objects.first(where: { $0.tag == 0x6F })?.children,
            let label = template.value(of: 0x50)
        else { return finish(.malformed(nil)) }
        if label.elementsEqual("AndroidPay".utf8) { return finish(.smartTap(response)) }
        guard label.elementsEqual("ApplePay".utf8) else { return finish(.noPasses(.otherWallet)) }
        guard let version = template.value(of: 0x9F21), version.elementsEqual(Self.version) else {
            return finish(.noPasses(.otherVersion(Array(template.value(of: 0x9F21) ?? []))))
        }
        // Byte 4, b3 of b7 to b0: VAS may be performed.
        guard let capabilities = template.value(of: 0x9F23), capabilities.count == 4,
            capabilities.last.map({ $0 & 0x08 != 0 }) == true
        else { return finish(.noPasses(.notWilling)) }
        return ask(0)
    }

    // MARK: GET DATA

    private mutating func ask(_ index: Int) -> Step {
        guard merchants.indices.contains(index) else { return finish(.read(entries)) }
        state = .asking(index)
        return .send(getData(merchants[index], isLast: index == merchants.count - 1))
    }

    private func getData(_ merchant: VASMerchant, isLast: Bool) -> CommandAPDU {
        // Byte 2, b7: VAS is supported.  Byte 4, b7: more passes follow.
        let more: UInt8 = !isLast && [.passOrPayment, .passAndPayment].contains(mode) ? 0x80 : 0x00
        let capabilities = [0x00, 0x80 | terminalType.rawValue, 0x00, more | mode.rawValue]
        var data = TLVTag(0x9F22).encode(Self.version)
        data += TLVTag(0x9F25).encode(merchant.identifierHash)
        data += TLVTag(0x9F26).encode(capabilities)
        if let url = merchant.signUpURL { data += TLVTag(0x9F29).encode(Array(url.utf8)) }
        return CommandAPDU(
            unchecked: (0x80, 0xCA, 0x01, merchant.sendsURLOnly ? 0x00 : 0x01), data: data, ne: 256)
    }

    private mutating func take(_ response: ResponseAPDU, _ index: Int) -> Step {
        let merchant = merchants[index]
        var status = Status(response.status)
        var cryptogram: VASCryptogram?
        var token: PassData?
        if status == .success, !merchant.sendsURLOnly {
            let template = (try? TLVList(response.data))?.first { $0.tag == 0x70 }?.children
            token = template?.value(of: 0x9F2A).flatMap { $0.isEmpty ? nil : PassData(Array($0)) }
            cryptogram = template?.value(of: 0x9F27).flatMap { VASCryptogram($0) }
            // What other merchants got stands.
            if cryptogram == nil { status = .noPass }
        }
        entries.append(Entry(merchant: merchant, status: status, cryptogram: cryptogram, mobileToken: token))
        switch status {
        case .notActivated, .userInterventionRequired: return finish(.read(entries))
        // A phone shows one pass: the next GET DATA would get 6A83 whatever it has.
        case .success where mode == .passOnly: return finish(.read(entries))
        default: return ask(index + 1)
        }
    }
}

extension AppleVAS.Status {
    /// Core NFC's table of error codes (`NFCVASErrorCode`).
    private static let table: [StatusWord: AppleVAS.Status] = [
        0x9000: .success, 0x6A83: .passNotFound, 0x6287: .notActivated, 0x6B00: .wrongParameters, 0x6700: .wrongLength,
        0x6984: .userInterventionRequired, 0x6A80: .incorrectData, 0x6340: .unsupportedVersion,
    ]

    init(_ word: StatusWord) { self = Self.table[word] ?? .other(word) }
}

extension TLVList {
    /// The value of the first object with this tag.
    func value(of tag: TLVTag) -> ArraySlice<UInt8>? { first { $0.tag == tag }?.value }
}

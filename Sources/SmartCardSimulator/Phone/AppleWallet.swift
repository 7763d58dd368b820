import Foundation
import SmartCard

/// Apple Wallet: Value Added Services 1.0, as sniffed from iPhones (proxmark3, kormax).
struct AppleWallet: PhoneWallet {
    struct Pass: Sendable {
        /// SHA-256 of the pass type identifier.
        let identifierHash: [UInt8]
        /// The merchant's public key, `04 x y`.
        let merchantKey: [UInt8]
        let message: [UInt8]
    }

    var passes: [Pass]
    /// The seconds by which the clock is ahead.
    var clockOffset = 0
    /// The time that the clock shows, in seconds since 2001; nil for the machine's.
    var fixedTime: UInt32?
    /// The private half of the key that is drawn for each cryptogram; nil to draw one.
    var ephemeralKey: [UInt8]?

    private var isSelected = false
    /// A pass has gone to a terminal that wants nothing else (mode 02).
    private var isSatisfied = false

    /// The phone is not activated: Wallet asks its holder to unlock.
    static let lockStatus: StatusWord = 0x6287
    private static let name = Array("OSE.VAS.01".utf8)

    init(passes: [Pass]) { self.passes = passes }

    mutating func reset() { (isSelected, isSatisfied) = (false, false) }

    mutating func answer(_ command: CommandAPDU, _ visit: inout WalletVisit) -> ResponseAPDU? {
        if command.ins == 0xA4, command.p1 == 0x04 {
            isSelected = command.data == Self.name
            return isSelected ? fileControlInformation(visit) : nil
        }
        return isSelected ? getData(command, &visit) : nil
    }

    /// The name, version 1.0, a random number, and the mobile capabilities: payment may be performed (20) and skipped (10), passes
    /// may be read (08) and skipped (04), encrypted (02).
    private func fileControlInformation(_ visit: WalletVisit) -> ResponseAPDU {
        let random = (0..<4).map { _ in UInt8.random(in: 0...255) }
        return ResponseAPDU(
            data: TLVTag(0x6F).encode(
                objects: TLVTag(0x50).encode(Array("ApplePay".utf8)), TLVTag(0x9F21).encode([0x01, 0x00]),
                TLVTag(0x9F24).encode(random),
                TLVTag(0x9F23).encode([0x00, 0x00, 0x00, visit.offersPayment ? 0x3E : 0x1E])),
            status: .success)
    }

    private mutating func getData(_ command: CommandAPDU, _ visit: inout WalletVisit) -> ResponseAPDU {
        func refuse(_ status: StatusWord) -> ResponseAPDU { ResponseAPDU(status: status) }
        guard command.cla == 0x80, command.ins == 0xCA, command.p1 == 0x01, command.p2 <= 0x01 else {
            return refuse(0x6B00)
        }
        guard let objects = try? TLVList(command.data, padding: []) else { return refuse(0x6700) }
        func value(_ tag: TLVTag) -> [UInt8]? { objects.first { $0.tag == tag }.map { Array($0.value) } }
        guard value(0x9F22) == [0x01, 0x00] else { return refuse(0x6340) }
        guard let hash = value(0x9F25), hash.count == 32, let capabilities = value(0x9F26), capabilities.count == 4
        else {
            return refuse(0x6A80)
        }
        // The filter of version 1.0, and no other.
        if let filter = value(0x9F2B), filter != [0x01, 0x00, 0x00, 0x00, 0x00] { return refuse(0x6A80) }
        if command.p2 == 0x00 { return refuse(.success) }
        guard !isSatisfied, let pass = passes.first(where: { $0.identifierHash == hash }) else {
            if !isSatisfied { visit.outcome = .missing }
            return refuse(0x6A83)
        }
        if visit.isLocked(), let status = visit.lockStatus { return refuse(status) }
        guard let cryptogram = cryptogram(of: pass) else { return refuse(0x6F00) }
        visit.outcome = .given
        isSatisfied = capabilities[3] & 0x03 == 0x02
        return ResponseAPDU(
            data: TLVTag(0x70).encode(objects: TLVTag(0x9F2A).encode([]), TLVTag(0x9F27).encode(cryptogram)),
            status: .success)
    }

    /// Key identifier, X of an ephemeral key, and AES-256-GCM over time and message, with a tag of 16 bytes.
    private func cryptogram(of pass: Pass) -> [UInt8]? {
        guard let curve = ChipCurve(12), let pair = curve.keyPair(ephemeralKey),
            let secret = curve.agree(pass.merchantKey, pair.privateKey),
            let identifier = RSAKey.sha256(Array(pass.merchantKey[1..<33]))
        else { return nil }
        // ANSI X9.63: one round of SHA-256 over the secret, a counter and the party information.
        let information =
            [0x0D] + Array("id-aes256-GCM".utf8) + Array("ApplePay encrypted VAS data".utf8) + pass.identifierHash
        let seconds = fixedTime ?? UInt32(clamping: Int(Date.now.timeIntervalSinceReferenceDate) + clockOffset)
        let time = stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: seconds >> UInt32($0)) }
        guard let key = RSAKey.sha256(curve.secret(of: secret) + [0, 0, 0, 1] + information),
            let sealed = AES(key)?.gcm(time + pass.message, iv: [UInt8](repeating: 0, count: 16))
        else { return nil }
        return Array(identifier.prefix(4)) + Array(pair.publicKey[1..<33]) + sealed
    }
}

import CCryptoLegacy
import Foundation
import SmartCard
import Synchronization

/// An iPhone: passes of Apple Wallet (Value Added Services 1.0) in front of a payment card.
///
/// It is written from what phones do, apart from the reader's side.
final class AppleWalletPhone: VirtualCard {
    struct Pass: Sendable {
        /// SHA-256 of the pass type identifier.
        let identifierHash: [UInt8]
        /// The merchant's public key, `04 x y`.
        let merchantKey: [UInt8]
        let message: [UInt8]
    }

    struct Wallet: Sendable {
        var passes: [Pass]
        /// The taps for which the phone is locked.
        var lockedTaps = 0
        /// The seconds by which its clock is ahead.
        var clockOffset = 0
    }

    private struct State {
        /// The taps that found the phone locked, and whether this is one.
        var lockedTaps = 0
        var wasLocked = false
        var isSelected = false
        /// A pass has gone to a terminal that wants nothing else (mode 02).
        var isDone = false
    }

    private let card: any VirtualCard
    private let wallet: Wallet
    private let state = Mutex(State())

    private static let name = Array("OSE.VAS.01".utf8)

    init(_ wallet: Wallet, over card: any VirtualCard) { (self.wallet, self.card) = (wallet, card) }

    var radio: VirtualCardRadio { card.radio }

    func reset() {
        state.withLock { $0 = State(lockedTaps: $0.lockedTaps + ($0.wasLocked ? 1 : 0)) }
        card.reset()
    }

    func processingTime(of command: [UInt8]) -> Duration { card.processingTime(of: command) }

    func exchange(_ command: [UInt8]) -> [UInt8]? {
        guard let parsed = try? CommandAPDU(command) else { return card.exchange(command) }
        let answer = state.withLock { state -> ResponseAPDU? in
            if parsed.ins == 0xA4, parsed.p1 == 0x04 {
                state.isSelected = parsed.data == Self.name
                return state.isSelected ? fileControlInformation : nil
            }
            return state.isSelected ? getData(parsed, &state) : nil
        }
        return answer?.bytes ?? card.exchange(command)
    }

    /// As sniffed from a phone: the name, version 1.0, a random number, and the willingness to show passes, to pay, and to do
    /// without either.
    private var fileControlInformation: ResponseAPDU {
        let random = (0..<4).map { _ in UInt8.random(in: 0...255) }
        return ResponseAPDU(
            data: TLVTag(0x6F).encode(
                objects: TLVTag(0x50).encode(Array("ApplePay".utf8)), TLVTag(0x9F21).encode([0x01, 0x00]),
                TLVTag(0x9F24).encode(random), TLVTag(0x9F23).encode([0x00, 0x00, 0x00, 0x3E])),
            status: .success)
    }

    private func getData(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
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
        guard !state.isDone, let pass = wallet.passes.first(where: { $0.identifierHash == hash }) else {
            return refuse(0x6A83)
        }
        state.wasLocked = state.lockedTaps < wallet.lockedTaps
        guard !state.wasLocked else { return refuse(0x6287) }
        guard let cryptogram = cryptogram(of: pass) else { return refuse(0x6F00) }
        state.isDone = capabilities[3] & 0x03 == 0x02
        return ResponseAPDU(
            data: TLVTag(0x70).encode(objects: TLVTag(0x9F2A).encode([]), TLVTag(0x9F27).encode(cryptogram)),
            status: .success)
    }

    /// Key identifier, X of an ephemeral key, and AES-256-GCM over time and message, with a tag of 16 bytes.
    private func cryptogram(of pass: Pass) -> [UInt8]? {
        guard let curve = ChipCurve(12), let pair = curve.makeKeyPair(),
            let secret = curve.agree(pass.merchantKey, pair.privateKey),
            let identifier = RSAKey.sha256(Array(pass.merchantKey[1..<33]))
        else { return nil }
        // ANSI X9.63: one round of SHA-256 over the secret, a counter and the party information.
        let information =
            [0x0D] + Array("id-aes256-GCM".utf8) + Array("ApplePay encrypted VAS data".utf8) + pass.identifierHash
        let seconds = UInt32(clamping: Int(Date.now.timeIntervalSinceReferenceDate) + wallet.clockOffset)
        let time = stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: seconds >> UInt32($0)) }
        guard let key = RSAKey.sha256(curve.secret(of: secret) + [0, 0, 0, 1] + information),
            let sealed = AES(key)?.gcm(time + pass.message, iv: [UInt8](repeating: 0, count: 16))
        else { return nil }
        return Array(identifier.prefix(4)) + Array(pair.publicKey[1..<33]) + sealed
    }
}

extension AES {
    /// Encrypts by GCM without additional data (NIST SP 800-38D, 7.1): the ciphertext, and a tag of 16 bytes.
    func gcm(_ clear: [UInt8], iv: [UInt8]) -> [UInt8]? {
        guard key.count == 32, let context = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        var sealed = [UInt8](repeating: 0, count: clear.count)
        var tag = [UInt8](repeating: 0, count: 16)
        var count: Int32 = 0
        guard EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, nil, nil) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(iv.count), nil) == 1,
            EVP_EncryptInit_ex(context, nil, nil, key, iv) == 1,
            EVP_EncryptUpdate(context, &sealed, &count, clear, Int32(clear.count)) == 1, Int(count) == clear.count,
            EVP_EncryptFinal_ex(context, &tag, &count) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, &tag) == 1
        else { return nil }
        return sealed + tag
    }
}

import SmartCard

/// An application's verification of its issuer's answer to an online request (EMV Contactless Book C-3, 6.2).
///
/// It verifies the Authorization Response Cryptogram (ARPC) and the issuer's scripts.
struct IssuerUpdate: Hashable, Sendable {
    /// The method that computes the ARPC (EMV Book 2, 8.2).
    enum Method: String, CaseIterable, Sendable {
        /// 8.2.1: the ARQC with the Authorization Response Code added, encrypted.  Visa uses it with CVN 10 and 17.
        case method1 = "method-1"
        /// 8.2.2: a MAC of 4 bytes over the ARQC, the Card Status Update and more.  Visa's with CVN 18 and 22.
        case method2 = "method-2"
    }

    /// The ARQC that the answer belongs to, and the input of its key.
    struct Request: Hashable, Sendable {
        let cryptogram: [UInt8]
        let atc: [UInt8]
        let unpredictableNumber: [UInt8]
    }

    let method: Method
    /// With the keys of the Application Cryptogram, which the ARPC has too.
    let cryptogram: ApplicationCryptogram
    /// The issuer's master key for the MAC of scripts.
    let scriptKey: TripleDES

    /// Returns true if the issuer made `data`, the Issuer Authentication Data (tag 91), for `request`.
    func authenticates(_ data: [UInt8], _ request: Request) -> Bool {
        guard request.cryptogram.count == 8,
            let key = cryptogram.key(atc: request.atc, unpredictableNumber: request.unpredictableNumber)
        else { return false }
        switch method {
        case .method1:
            guard data.count == 10 else { return false }
            let code = data[8...] + [UInt8](repeating: 0, count: 6)
            return key.encrypt(zip(request.cryptogram, code).map { $0 ^ $1 }) == Array(data.prefix(8))
        case .method2:
            guard (8...16).contains(data.count) else { return false }
            return key.mac(request.cryptogram + data.dropFirst(4), padding: .marker)?.prefix(4) == data.prefix(4)
        }
    }

    /// Returns the data of `command`, a script command in secure messaging format 2 (EMV Book 2, 9.2), without its MAC.
    ///
    /// The MAC has 8 bytes and covers CLA, INS, P1, P2 and Lc, the ATC, the ARQC and the data, as Visa computes it.
    ///
    /// - Returns: nil if the MAC is missing or wrong.
    func open(_ command: CommandAPDU, _ request: Request) -> [UInt8]? {
        guard command.data.count >= 8, let key = scriptSessionKey(request.atc) else { return nil }
        let data = Array(command.data.dropLast(8))
        let header = [command.cla, command.ins, command.p1, command.p2, UInt8(truncatingIfNeeded: command.data.count)]
        let mac = key.mac(header + request.atc + request.cryptogram + data, padding: .marker)
        return mac == command.data.suffix(8) ? data : nil
    }

    /// Visa's session key for scripts: the card's master key with the ATC added to the end of its left half, and the
    /// inverted ATC to that of its right half.
    private func scriptSessionKey(_ atc: [UInt8]) -> TripleDES? {
        var master = cryptogram
        master.issuerKey = scriptKey
        guard var key = master.masterKey?.key, atc.count == 2 else { return nil }
        for index in 0..<2 {
            key[6 + index] ^= atc[index]
            key[14 + index] ^= ~atc[index]
        }
        return TripleDES(key)
    }
}

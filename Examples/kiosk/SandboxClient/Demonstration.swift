import CardEncryption
import EMVContactless
package import ProximityReader
import SmartCard
package import SmartCardSimulator
package import WalletPasses

/// What a demonstration without hardware and contracts has: virtual cards' authorities, and published keys of wallets.
package enum Demonstration {
    /// Returns the merchant that the passes of the virtual phones are for.
    package static func merchant() throws -> PassConfiguration {
        // TEST: published keys, Apple's of proxmark3 and Google's of its sample application for Smart Tap.
        let keys = try [appleKey, googleKey].map { digits in
            guard let key = MerchantKey(bytes(digits)) else { throw CardError(.other, "a key that is none") }
            return key
        }
        return try PassConfiguration(merchants: [
            PassMerchant(
                id: "loyalty",
                apple: .init(passTypeIdentifier: "pass.com.passkit.pksamples.nfcdemo", keys: [keys[0]]),
                google: .init(collectorID: 20_180_608, keys: [1: keys[1]]))
        ])
    }

    private static let appleKey = "3d1547f23cd78ad052a58860f1219e8fb791ec4dfe33769f5b9bfa627a656ca1"
    private static let googleKey = "826d17e50767b165b0e4d9e332f8d1d1e20224284fb4daf1e50a03246e70797d"

    private static func bytes(_ digits: String) -> [UInt8] {
        let digits = digits.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// Returns a terminal with this reader that knows the keys behind the virtual cards' certificates.
    package static func configuration(
        _ reader: VirtualReader
    ) throws -> ProximityReaderSystem.Configuration {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.reader = .reader(reader)
        for key in VirtualCards.certificationAuthorityKeys {
            configuration.certificationAuthorityKeys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum, expiration: CalendarDate(packed: key.expires)))
        }
        return configuration
    }

    /// Returns a card of a name; a phone that answers nothing before it has heard what the terminal is for.
    package static func card(_ name: String) -> (any VirtualCard)? {
        guard name == "phone-apple" else { return VirtualCards.named(name) }
        return try? CardFile(parsing: "variant phone-apple {\nscreen closed\n}").makeCard()
    }
}

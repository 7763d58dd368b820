public import CardEncryption

/// A merchant whose passes are read: its name for the application, and what each wallet knows it by.
///
/// A wallet that is left out is not asked.
public struct PassMerchant: Identifiable, Sendable {
    /// Apple Wallet: Value Added Services 1.0.
    public struct Apple: Sendable {
        /// The pass type identifier, such as `pass.com.example.loyalty`.
        public var passTypeIdentifier: String
        /// The private keys whose public halves passes are encrypted to: a pass names its key.  After a change of keys, keep the
        /// old ones for as long as passes with them are around.
        public var keys: [MerchantKey]
        /// A page where a customer without a pass can get one.
        public var signUpURL: String?

        public init(passTypeIdentifier: String, keys: [MerchantKey], signUpURL: String? = nil) {
            (self.passTypeIdentifier, self.keys, self.signUpURL) = (passTypeIdentifier, keys, signUpURL)
        }
    }

    /// Google's wallet: Smart Tap 2.1.
    public struct Google: Sendable {
        /// The collector that the passes name, from Google's console.
        public var collectorID: UInt32
        /// The keys registered with Google, by version.  The newest is used; older ones may stay until they are withdrawn.
        public var keys: [UInt32: MerchantKey]
        public var services: [SmartTapService]
        /// Identify the place and the merchant to the wallet; at most 32 bytes each.
        public var locationID: String?
        public var terminalID: String?
        public var merchantName: String?
        public var merchantCategory: String?

        public init(
            collectorID: UInt32, keys: [UInt32: MerchantKey], services: [SmartTapService] = [.loyalty],
            locationID: String? = nil, terminalID: String? = nil, merchantName: String? = nil,
            merchantCategory: String? = nil
        ) {
            (self.collectorID, self.keys, self.services) = (collectorID, keys, services)
            (self.locationID, self.terminalID) = (locationID, terminalID)
            (self.merchantName, self.merchantCategory) = (merchantName, merchantCategory)
        }

        /// The newest version with its key.
        var newestKey: (version: UInt32, key: MerchantKey)? {
            keys.max { $0.key < $1.key }.map { (version: $0.key, key: $0.value) }
        }
    }

    /// The name by which an application asks for it; the pass type identifier, where Apple's surface asks.
    public let id: String
    public let apple: Apple?
    public let google: Google?

    public init(id: String, apple: Apple? = nil, google: Google? = nil) {
        (self.id, self.apple, self.google) = (id, apple, google)
    }
}

public import Foundation
import Synchronization

/// A request to read loyalty passes from a phone's wallet.
public class VASRequest: @unchecked Sendable {
    /// A merchant whose pass is requested.
    public struct Merchant: Identifiable, Sendable {
        /// The pass type identifier: `pass.com.example.loyalty`.
        public let id: String
        /// The page that a phone without the pass offers: `https`, at most 194 bytes; nil for none.
        public let url: URL?
        /// Always false, whatever was passed to the initializer, as with Apple's.
        @available(*, deprecated, message: "Not supported")
        public var shouldSendURLOnly: Bool { false }
        /// The name of the merchant or its program, for display.  By default the identifier.
        public var localizedName: String

        public init(id: String, url: URL? = nil, localizedName: String? = nil) {
            (self.id, self.url, self.localizedName) = (id, url, localizedName ?? id)
        }

        /// Creates a merchant; `shouldSendURLOnly` has no effect.
        @available(*, deprecated, message: "Use init(id:url:localizedName:)")
        public init(id: String, url: URL? = nil, shouldSendURLOnly: Bool = false, localizedName: String? = nil) {
            self.init(id: id, url: url, localizedName: localizedName)
        }
    }

    /// The merchants in the order in which a phone is asked.  If there are none, those of the configuration.
    public let vasMerchants: [Merchant]
    /// The text for the customer, such as “loyalty card”, for display.
    public let localizedVASType: String
    private let language = Mutex<Locale.Language?>(nil)
    /// The language of messages; nil for the machine's language.
    public var userInterfaceLanguage: Locale.Language? {
        get { language.withLock { $0 } }
        set { language.withLock { $0 = newValue } }
    }

    public init(vasMerchants: [Merchant] = [], localizedVASType: String = "") {
        (self.vasMerchants, self.localizedVASType) = (vasMerchants, localizedVASType)
    }
}

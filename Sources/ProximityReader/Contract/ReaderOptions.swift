extension PaymentCardReader {
    public struct Options: Sendable {
        /// True to return the result before ``Event/userInterfaceDismissed``, while the card is still in the field.
        public var returnReadResultImmediately: Bool = false
        /// True to return a result with an outcome, instead of throwing, for a card that declines or fails.  The
        /// payment service then receives its general card data.
        public var includeErrorInReadResult: Bool = false
        /// The merchants of requests that name none.
        @available(*, deprecated, message: "Use VASRequest")
        public var vasMerchants: [VASRequest.Merchant] {
            get { merchants }
            set { merchants = newValue }
        }
        /// ``vasMerchants``, without its deprecation.
        var merchants: [VASRequest.Merchant] = []

        public init() {}

        @available(*, deprecated, message: "Use VASRequest")
        public init(vasMerchants: [VASRequest.Merchant]) { merchants = vasMerchants }
    }

    /// A token that the payment service has signed for a merchant: a JSON Web Token.
    public struct Token: RawRepresentable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
    }
}

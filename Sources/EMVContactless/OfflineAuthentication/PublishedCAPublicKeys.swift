extension CAPublicKeys {
    /// The keys that the payment schemes have published, live and test.
    public static let published: CAPublicKeys = (try? CAPublicKeys(parsing: publishedText)) ?? CAPublicKeys()

    /// The published keys in the format of ``init(parsing:)``, to be copied and changed.
    public static let publishedText = """
        """
}

/// The public keys that the payment schemes have published: `Published/published.keys`, which says where the numbers are
/// from, and which the compiler embeds.
extension CAPublicKeys {
    /// The keys of ``publishedText``.
    public static let published: CAPublicKeys = {
        do {
            return try CAPublicKeys(parsing: publishedText)
        } catch {
            // A fault of the library's own file, which a test reads: better seen than a terminal without keys.
            fatalError("published.keys: \(error)")
        }
    }()

    /// The published keys in the format of ``init(parsing:)``, to be copied and changed.
    public static let publishedText = String(decoding: PackageResources.published_keys, as: UTF8.self)
}

/// The public keys that the payment schemes have published: `Published/published.keys`, which names the sources and is
/// embedded by the compiler.
extension CAPublicKeys {
    /// The keys of ``publishedText``.
    public static let published: CAPublicKeys = LoadedOnce.reading {
        do {
            return try CAPublicKeys(parsing: publishedText)
        } catch {
            // An error in the library's own file, which a test parses: better seen than a terminal without keys.
            fatalError("published.keys: \(error)")
        }
    }

    /// The published keys in the format of ``init(parsing:)``, to be copied and changed.
    public static let publishedText = String(decoding: PackageResources.published_keys, as: UTF8.self)
}

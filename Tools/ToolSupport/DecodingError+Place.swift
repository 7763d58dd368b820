extension DecodingError {
    /// The place in the JSON and the problem, without the values: `merchant has no name`.
    package var place: String {
        let (context, problem): (Context, String) =
            switch self {
            case .keyNotFound(let key, let context): (context, "has no \(key.stringValue)")
            case .valueNotFound(_, let context): (context, "is null")
            case .typeMismatch(_, let context): (context, "is of another type")
            case .dataCorrupted(let context) where context.codingPath.isEmpty: (context, "is no JSON")
            case .dataCorrupted(let context): (context, "is not what it should be")
            @unknown default: (Context(codingPath: [], debugDescription: ""), "cannot be read")
            }
        let path = context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
        return (path.isEmpty ? "it" : String(path.drop { $0 == "." })) + " " + problem
    }
}

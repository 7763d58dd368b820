/// An error in resolving a dependency.
public enum ContainerError: Error, Sendable {
    /// Nothing is registered.
    ///
    /// - Parameters:
    ///   - dependency: the type, and the name if one was asked for.
    ///   - suggestions: registrations with a similar type or another name.
    case notRegistered(_ dependency: String, suggestions: [String])
    /// The dependency needs itself.
    ///
    /// - Parameter path: from the dependency to its own repetition.
    case circular(path: [String])
    /// The factory threw an error.
    case factoryFailed(_ dependency: String, any Error)
    /// Only objects can be registered weakly, and the factory made a value.
    case weakUnsupported(_ dependency: String)
}

extension ContainerError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .notRegistered(let dependency, let suggestions):
            "\(dependency) is not registered. "
                + (suggestions.isEmpty
                    ? "Register it in the composition root." : "These are: \(suggestions.joined(separator: ", ")).")
        case .circular(let path):
            "\(path.first ?? "") needs itself: \(path.joined(separator: " -> ")). Let one of them take the other later."
        case .factoryFailed(let dependency, let error): "\(dependency) could not be made: \(error)"
        case .weakUnsupported(let dependency):
            "\(dependency) is registered weakly, and is no object. Register it as a singleton."
        }
    }
}

import Glibc
public import Testing

/// The sanitizer that a test process is built with, if any: what it does to a process, some tests cannot go with.
///
/// - Both make `mlock` do nothing, and reserve terabytes of addresses, which a core dump and a limit of memory would count.
/// - The address sanitizer's search for leaks, which ends every program, cannot go on under a debugger, and so not under
///   strace.
public enum Sanitizer: String, Sendable {
    case address
    case thread

    /// That of this process, and of the programs that were built with it.
    public static let current: Sanitizer? = {
        func has(_ symbol: String) -> Bool { dlsym(nil, symbol) != nil }
        return has("__asan_init") ? .address : has("__tsan_init") ? .thread : nil
    }()
}

extension Trait where Self == ConditionTrait {
    /// Skips the test under one of these sanitizers, saying so and why.
    ///
    /// - Parameter reason: what the test needs that the sanitizer takes: `mlock does nothing there`.
    public static func unsanitized(by sanitizers: Sanitizer..., because reason: String) -> Self {
        let current = Sanitizer.current.flatMap { sanitizers.contains($0) ? $0 : nil }
        return .disabled(
            if: current != nil, "under the \(current?.rawValue ?? "") sanitizer \(reason)")
    }
}

import Synchronization

/// What a process reads once, when it is first needed: the published keys, and the tables that are texts or made of many.
///
/// The first card would wait for it, if ``EntryPoint/rehearse()`` did not need it before.
package enum LoadedOnce {
    private static let number = Atomic(0)

    /// How many keys files and tables have been read by now.
    package static var count: Int { number.load(ordering: .relaxed) }

    static func reading<Value>(_ read: () throws -> Value) rethrows -> Value {
        number.add(1, ordering: .relaxed)
        return try read()
    }
}

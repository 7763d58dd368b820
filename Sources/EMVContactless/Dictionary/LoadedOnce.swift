import Synchronization

/// Published keys, and tables that are texts or made of many: a process reads them once, when they are first needed.
///
/// The first card would wait for it, if ``EntryPoint/rehearse()`` did not need it before.
package enum LoadedOnce {
    private static let number = Atomic(0)

    /// The number of key files and tables that have been read by now.
    package static var count: Int { number.load(ordering: .relaxed) }

    static func reading<Value>(_ read: () throws -> Value) rethrows -> Value {
        number.add(1, ordering: .relaxed)
        return try read()
    }
}

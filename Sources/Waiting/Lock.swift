public import Glibc

/// A value behind a lock.
///
/// The lock is a pthread mutex: the thread sanitizer knows it, but does not see into `Mutex`.  It serves values that a
/// C library's thread and Swift's threads share without any other ordering.  Copies share the lock.
///
/// A closure, or a tuple with one, is kept in a structure: Swift wraps a closure that is itself the generic value once
/// more at each access, so that each call of it goes deeper than the last, until the stack ends.
public struct Lock<Value>: @unchecked Sendable {
    // Unchecked: the value is accessed only with the mutex held.  Both are in one allocation.
    @usableFromInline let storage: ManagedBuffer<Value, pthread_mutex_t>

    private final class Storage: ManagedBuffer<Value, pthread_mutex_t> {
        deinit { withUnsafeMutablePointerToElements { _ = pthread_mutex_destroy($0) } }
    }

    /// Puts a value behind a new lock.
    public init(_ value: Value) {
        storage = Storage.create(minimumCapacity: 1) { _ in value }
        storage.withUnsafeMutablePointerToElements { mutex in
            mutex.initialize(to: pthread_mutex_t())
            pthread_mutex_init(mutex, nil)
        }
    }

    /// Runs `body` with the value, alone.  Blocks the thread while another one has it; not recursive.
    ///
    /// - Throws: the error of `body`.
    @inlinable public func withLock<R, E: Error>(_ body: (inout Value) throws(E) -> R) throws(E) -> R {
        try storage.withUnsafeMutablePointers { value, mutex throws(E) in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return try body(&value.pointee)
        }
    }
}

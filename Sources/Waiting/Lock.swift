package import Glibc

/// A value behind a lock.
///
/// The lock is pthread's, which the thread sanitizer knows, where it does not see into `Mutex`.  It is for values in
/// which a C library's thread and Swift's meet, where nothing else puts them in order.  Copies are the same lock.
package struct Lock<Value>: @unchecked Sendable {
    // Unchecked: the value is only touched with the mutex held.  Both lie in one piece of memory.
    @usableFromInline let storage: ManagedBuffer<Value, pthread_mutex_t>

    private final class Storage: ManagedBuffer<Value, pthread_mutex_t> {
        deinit { withUnsafeMutablePointerToElements { _ = pthread_mutex_destroy($0) } }
    }

    package init(_ value: Value) {
        storage = Storage.create(minimumCapacity: 1) { _ in value }
        storage.withUnsafeMutablePointerToElements { mutex in
            mutex.initialize(to: pthread_mutex_t())
            pthread_mutex_init(mutex, nil)
        }
    }

    @inlinable package func withLock<R, E: Error>(_ body: (inout Value) throws(E) -> R) throws(E) -> R {
        try storage.withUnsafeMutablePointers { value, mutex throws(E) in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return try body(&value.pointee)
        }
    }
}

import Glibc

/// A value behind a lock.
///
/// The lock is pthread's, which the thread sanitizer knows, where it does not see into `Mutex`.  It is for values in
/// which a C library's thread and Swift's meet, where nothing else puts them in order.
package final class Lock<Value>: @unchecked Sendable {
    // Unchecked: `value` is only touched with `mutex` held.
    private var value: Value
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    package init(_ value: Value) {
        self.value = value
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    package func withLock<R, E: Error>(_ body: (inout Value) throws(E) -> R) throws(E) -> R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}

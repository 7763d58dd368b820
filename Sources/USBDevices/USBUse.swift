package import Synchronization
import Waiting

/// This process's use of libusb, so that tests can check for leaks.
package enum USBUse {
    private static let counts = Lock((handles: 0, transfers: 0))
    /// The number of times the event thread has woken.
    package static let wakeUps = Atomic(0)

    package static var now: (handles: Int, transfers: Int) { counts.withLock { $0 } }

    static func add(handles: Int = 0, transfers: Int = 0) {
        counts.withLock { $0 = ($0.handles + handles, $0.transfers + transfers) }
    }
}

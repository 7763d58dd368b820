import CSystemBus
import Foundation
import Logging

/// Tells when this machine falls asleep and wakes: the signal PrepareForSleep of logind (org.freedesktop.login1(5)).
///
/// On a machine without a system bus, such as a container, nothing is told.
final class SleepWatch: @unchecked Sendable {
    // Unchecked: the thread has the bus to itself, until it ends.

    private let bus: OpaquePointer
    /// Its writing end is closed to end the thread.
    private let ending: Pipe
    private let tell: @Sendable (_ isAsleep: Bool) -> Void

    private init(_ bus: OpaquePointer, _ tell: @escaping @Sendable (_ isAsleep: Bool) -> Void) {
        self.bus = bus
        self.tell = tell
        ending = Pipe()
    }

    /// Watches until the handle is released.
    ///
    /// - Parameters:
    ///   - address: of the bus (D-Bus specification, Server Addresses); nil: the system's.
    ///   - tell: called on a thread of its own.
    /// - Returns: nil where there is no such bus.
    static func start(on address: String?, _ tell: @escaping @Sendable (_ isAsleep: Bool) -> Void) -> Handle? {
        guard let bus = open(address) else {
            logger.debug("no system bus: nothing tells when this machine sleeps")
            return nil
        }
        let watch = SleepWatch(bus, tell)
        let matched = sd_bus_match_signal(
            bus, nil, "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
            "PrepareForSleep",
            { message, watch, _ in
                var isAsleep: Int32 = 0
                guard sd_bus_message_read_basic(message, CChar(UInt8(ascii: "b")), &isAsleep) > 0, let watch else {
                    return 0
                }
                Unmanaged<SleepWatch>.fromOpaque(watch).takeUnretainedValue().tell(isAsleep != 0)
                return 0
            }, Unmanaged.passUnretained(watch).toOpaque())
        guard matched >= 0 else {
            sd_bus_flush_close_unref(bus)
            logger.warning("the system bus does not take a subscription: \(String(cString: strerror(-matched)))")
            return nil
        }
        Thread.detachNewThread { watch.run() }
        return Handle(watch)
    }

    private static func open(_ address: String?) -> OpaquePointer? {
        var bus: OpaquePointer?
        guard let address else { return sd_bus_open_system(&bus) >= 0 ? bus : nil }
        guard sd_bus_new(&bus) >= 0, sd_bus_set_address(bus, address) >= 0, sd_bus_set_bus_client(bus, 1) >= 0,
            sd_bus_start(bus) >= 0
        else {
            sd_bus_unref(bus)
            return nil
        }
        return bus
    }

    /// Ends the watch when it is released.
    final class Handle: Sendable {
        private let ending: FileHandle
        fileprivate init(_ watch: SleepWatch) { ending = watch.ending.fileHandleForWriting }
        deinit { try? ending.close() }
    }

    private func run() {
        defer { sd_bus_flush_close_unref(bus) }
        while true {
            var status: Int32
            repeat { status = sd_bus_process(bus, nil) } while status > 0
            guard status == 0 else { return logger.warning("the system bus is gone") }
            var waits = [
                pollfd(fd: sd_bus_get_fd(bus), events: Int16(sd_bus_get_events(bus)), revents: 0),
                pollfd(fd: ending.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0),
            ]
            // What the bus has to do at a time of its own, it does when something comes.
            guard poll(&waits, 2, -1) > 0 || errno == EINTR else { return }
            if waits[1].revents != 0 { return }
        }
    }
}

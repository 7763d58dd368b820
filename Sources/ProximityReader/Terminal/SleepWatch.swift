import CSystemBus
import Foundation
import Logging

/// Tells when this machine falls asleep and wakes: the signal PrepareForSleep of logind (org.freedesktop.login1(5)).
final class SleepWatch: @unchecked Sendable {
    // Unchecked: the thread has the bus to itself.

    private let address: String?
    /// Its writing end is closed to end the thread.
    private let ending = Pipe()
    private let states: AsyncStream<Bool>.Continuation
    /// Where logind's manager is.
    private let manager = (
        name: "org.freedesktop.login1", path: "/org/freedesktop/login1", interface: "org.freedesktop.login1.Manager"
    )

    private init(_ address: String?, _ states: AsyncStream<Bool>.Continuation) {
        self.address = address
        self.states = states
    }

    /// Whether the machine sleeps, or is about to: first what it does now, then each change, in their order.
    ///
    /// Ends when the bus does: at once on a machine without one, such as a container.
    ///
    /// - Parameter address: of the bus (D-Bus specification, Server Addresses); nil: the system's.
    static func states(on address: String?) -> AsyncStream<Bool> {
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
        let watch = SleepWatch(address, continuation)
        let ending = watch.ending.fileHandleForWriting
        continuation.onTermination = { _ in try? ending.close() }
        // Whatever is asked of a bus may take half a minute.
        Thread.detachNewThread {
            watch.run()
            continuation.finish()
        }
        return stream
    }

    private func run() {
        guard let bus = open() else { return logger.debug("no system bus: nothing tells when this machine sleeps") }
        defer { sd_bus_flush_close_unref(bus) }
        guard subscribe(bus) else { return }
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

    private func open() -> OpaquePointer? {
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

    /// To the signal first, so that nothing is missed between the two.
    private func subscribe(_ bus: OpaquePointer) -> Bool {
        let matched = sd_bus_match_signal(
            bus, nil, manager.name, manager.path, manager.interface, "PrepareForSleep",
            { message, watch, _ in
                var isAsleep: Int32 = 0
                guard sd_bus_message_read_basic(message, CChar(UInt8(ascii: "b")), &isAsleep) > 0, let watch else {
                    return 0
                }
                Unmanaged<SleepWatch>.fromOpaque(watch).takeUnretainedValue().states.yield(isAsleep != 0)
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
        guard matched >= 0 else {
            logger.warning("the system bus does not take a subscription: \(String(cString: strerror(-matched)))")
            return false
        }
        var isAsleep: Int32 = 0
        let known = sd_bus_get_property_trivial(
            bus, manager.name, manager.path, manager.interface, "PreparingForSleep", nil,
            CChar(UInt8(ascii: "b")), &isAsleep)
        // Without logind nothing is told.
        if known >= 0 { states.yield(isAsleep != 0) }
        return true
    }
}

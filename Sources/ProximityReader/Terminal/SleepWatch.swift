import CSystemBus
import Foundation
import Logging

/// A watch for this machine's sleep: the signal PrepareForSleep of logind (org.freedesktop.login1(5)).
package final class SleepWatch: @unchecked Sendable {
    // Unchecked: only the thread uses the bus.

    private let address: String?
    /// A pipe; closing its writing end stops the thread.
    private let ending = Pipe()
    private let states: AsyncStream<Bool>.Continuation
    /// The address of logind's manager.
    private let manager = (
        name: "org.freedesktop.login1", path: "/org/freedesktop/login1", interface: "org.freedesktop.login1.Manager"
    )

    private init(_ address: String?, _ states: AsyncStream<Bool>.Continuation) {
        self.address = address
        self.states = states
    }

    /// Returns a stream that yields true when the machine sleeps or is about to: first the present state, then each
    /// change in order.
    ///
    /// It ends with the bus: at once on a machine without one, such as a container.
    ///
    /// - Parameter address: the address of the bus (D-Bus specification, Server Addresses); nil for the system bus.
    package static func states(on address: String?) -> AsyncStream<Bool> {
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
        let watch = SleepWatch(address, continuation)
        let ending = watch.ending.fileHandleForWriting
        continuation.onTermination = { _ in try? ending.close() }
        // A call over the bus may take half a minute.
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
            // The bus's own periodic work is done when a message arrives.
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

    /// Subscribes to the signal before it reads the state, so that no change is missed.
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
        // Without logind nothing is yielded.
        if known >= 0 { states.yield(isAsleep != 0) }
        return true
    }
}

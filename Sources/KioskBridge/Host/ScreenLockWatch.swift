import CSystemBus
import Foundation
import Logging

/// A watch for the lock of this machine's screens: the signals Lock and Unlock, and the property LockedHint, of logind's
/// sessions (org.freedesktop.login1(5), Session Objects).
///
/// Lock and Unlock ask a session's screen locker to act; LockedHint says that it has.  Some lockers do one alone.
final class ScreenLockWatch: @unchecked Sendable {
    // Unchecked: only the thread uses the bus and the set.

    private let address: String?
    /// A pipe; closing its writing end stops the thread.
    private let ending = Pipe()
    private let states: AsyncStream<Bool>.Continuation
    /// The paths of the sessions that are locked.
    private var locked: Set<String> = []
    private var told: Bool?
    private let name = "org.freedesktop.login1"
    private let sessionInterface = "org.freedesktop.login1.Session"
    /// More sessions than these are not followed.
    private static let limit = 256

    private init(_ address: String?, _ states: AsyncStream<Bool>.Continuation) {
        self.address = address
        self.states = states
    }

    /// Returns a stream that yields true when a session of a seat is locked: first the present state, then each change.
    ///
    /// It ends with the bus: at once on a machine without one, such as a container.
    ///
    /// - Parameter address: the address of the bus (D-Bus specification, Server Addresses); nil for the system bus.
    static func states(on address: String?) -> AsyncStream<Bool> {
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
        let watch = ScreenLockWatch(address, continuation)
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
        guard let bus = open() else { return logger.debug("no system bus: nothing tells when the screen is locked") }
        defer { sd_bus_flush_close_unref(bus) }
        guard subscribe(bus) else { return logger.warning("the system bus does not take a subscription") }
        lookAtSessions(bus)
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

    /// Subscribes before the state is read, so that no change is missed.
    private func subscribe(_ bus: OpaquePointer) -> Bool {
        let sessions = "path_namespace='/org/freedesktop/login1/session'"
        let rules = [
            "interface='\(sessionInterface)',\(sessions)",
            "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\(sessionInterface)',\(sessions)",
            "interface='org.freedesktop.login1.Manager',member='SessionRemoved'",
        ]
        return rules.allSatisfy { rule in
            sd_bus_add_match(
                bus, nil, "type='signal',sender='\(name)',\(rule)",
                { message, watch, _ in
                    guard let message, let watch else { return 0 }
                    Unmanaged<ScreenLockWatch>.fromOpaque(watch).takeUnretainedValue().take(message)
                    return 0
                }, Unmanaged.passUnretained(self).toOpaque()) >= 0
        }
    }

    private func take(_ message: OpaquePointer) {
        guard let path = sd_bus_message_get_path(message).map({ String(cString: $0) }),
            let member = sd_bus_message_get_member(message).map({ String(cString: $0) })
        else { return }
        switch member {
        case "Lock": set(path, true, on: sd_bus_message_get_bus(message))
        case "Unlock": set(path, false, on: nil)
        case "PropertiesChanged":
            guard let isLocked = Self.lockedHint(message) else { return }
            set(path, isLocked, on: sd_bus_message_get_bus(message))
        case "SessionRemoved":
            guard Self.text(message, "s") != nil, let removed = Self.text(message, "o") else { return }
            set(removed, false, on: nil)
        default: break
        }
    }

    private func set(_ path: String, _ isLocked: Bool, on bus: OpaquePointer?) {
        if !isLocked {
            locked.remove(path)
        } else if locked.count < Self.limit, let bus, hasSeat(path, bus) {
            locked.insert(path)
        }
        tell()
    }

    private func tell() {
        guard told != !locked.isEmpty else { return }
        told = !locked.isEmpty
        states.yield(!locked.isEmpty)
    }

    // MARK: Calls

    /// Reads the state of all sessions: ListSessions of the manager, whose answer is a(susso) with the seat as fourth.
    private func lookAtSessions(_ bus: OpaquePointer) {
        var answer: OpaquePointer?
        var call: OpaquePointer?
        defer {
            sd_bus_message_unref(answer)
            sd_bus_message_unref(call)
        }
        guard
            sd_bus_message_new_method_call(
                bus, &call, name, "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "ListSessions") >= 0,
            // Without logind nothing is yielded.
            sd_bus_call(bus, call, 0, nil, &answer) >= 0, let answer,
            sd_bus_message_enter_container(answer, CChar(UInt8(ascii: "a")), "(susso)") > 0
        else { return }
        for _ in 0..<Self.limit {
            guard sd_bus_message_enter_container(answer, CChar(UInt8(ascii: "r")), "susso") > 0,
                sd_bus_message_skip(answer, "sus") >= 0, let seat = Self.text(answer, "s"),
                let path = Self.text(answer, "o"), sd_bus_message_exit_container(answer) >= 0
            else { break }
            var isLocked: Int32 = 0
            guard !seat.isEmpty,
                sd_bus_get_property_trivial(
                    bus, name, path, sessionInterface, "LockedHint", nil, CChar(UInt8(ascii: "b")), &isLocked) >= 0
            else { continue }
            if isLocked != 0 { locked.insert(path) }
        }
        tell()
    }

    /// The property Seat of a session: (so), whose name is empty for a session without one.
    private func hasSeat(_ path: String, _ bus: OpaquePointer) -> Bool {
        var answer: OpaquePointer?
        defer { sd_bus_message_unref(answer) }
        guard sd_bus_get_property(bus, name, path, sessionInterface, "Seat", nil, &answer, "(so)") >= 0, let answer,
            sd_bus_message_enter_container(answer, CChar(UInt8(ascii: "r")), "so") > 0
        else { return false }
        return Self.text(answer, "s")?.isEmpty == false
    }

    private static func text(_ message: OpaquePointer, _ type: Unicode.Scalar) -> String? {
        var text: UnsafePointer<CChar>?
        guard sd_bus_message_read_basic(message, CChar(UInt8(ascii: type)), &text) > 0 else { return nil }
        return text.map { String(cString: $0) }
    }

    /// The LockedHint among the properties that changed: sa{sv}as; nil if it is not among them.
    private static func lockedHint(_ message: OpaquePointer) -> Bool? {
        guard text(message, "s") != nil,
            sd_bus_message_enter_container(message, CChar(UInt8(ascii: "a")), "{sv}") > 0
        else { return nil }
        for _ in 0..<limit {
            guard sd_bus_message_enter_container(message, CChar(UInt8(ascii: "e")), "sv") > 0,
                let property = text(message, "s")
            else { return nil }
            guard property == "LockedHint" else {
                guard sd_bus_message_skip(message, "v") >= 0, sd_bus_message_exit_container(message) >= 0 else {
                    return nil
                }
                continue
            }
            var isLocked: Int32 = 0
            guard sd_bus_message_enter_container(message, CChar(UInt8(ascii: "v")), "b") > 0,
                sd_bus_message_read_basic(message, CChar(UInt8(ascii: "b")), &isLocked) > 0
            else { return nil }
            return isLocked != 0
        }
        return nil
    }
}

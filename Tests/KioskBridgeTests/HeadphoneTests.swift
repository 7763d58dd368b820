import CInput
import CUMockdev
import Foundation
import Synchronization
import TestSupport
import Testing
import USBTestSupport

@testable import KioskBridge

/// Input devices whose ioctls the test answers; their events come through the device files.
private final class MockInputs: @unchecked Sendable {
    // Unchecked: umockdev locks its own, and calls the handlers on threads of its own.
    private let testbed: UnsafeMutablePointer<UMockdevTestbed>?
    /// The devices that the handlers refer to, for as long as there are handlers.
    private let devices = Mutex<[Device]>([])

    /// The device behind a file: the bits of its switches, and of those that are on.
    final class Device: Sendable {
        let path: String
        let system: String
        /// Whether udev has given it to its group: it answers nobody before.
        let isGiven = Mutex(false)
        let isOn = Mutex(false)
        /// How many times it was asked for the state.
        let asked = Mutex(0)
        let switches: UInt8

        init(_ number: Int, switches: UInt8) {
            path = "/dev/input/event\(number)"
            system = "/sys/devices/platform/input\(number)/input/input\(number)/event\(number)"
            self.switches = switches
        }

        func answer(_ request: UInt) -> [UInt8]? {
            guard isGiven.withLock({ $0 }) else { return nil }
            switch request {
            case CINPUT_SWITCHES: return [switches, 0, 0]
            case CINPUT_SWITCH_STATES:
                asked.withLock { $0 += 1 }
                return [isOn.withLock { $0 } ? 1 << UInt8(SW_HEADPHONE_INSERT) : 0, 0, 0]
            default: return nil
            }
        }
    }

    init() { testbed = umockdev_testbed_new() }

    deinit { g_object_unref(testbed) }

    func add(_ device: Device) throws {
        var error: UnsafeMutablePointer<GError>?
        devices.withLock { $0.append(device) }
        let handler = try #require(umockdev_ioctl_base_new())
        defer { g_object_unref(handler) }
        cumockdev_on_ioctl(
            handler,
            { _, client, context in
                guard let client, let context else { return 0 }
                MockInputs.answer(client, Unmanaged<Device>.fromOpaque(context).takeUnretainedValue())
                return 1
            }, Unmanaged.passUnretained(device).toOpaque(), { _, _ in })
        // Before its file is there: the watch opens it at once, and umockdev ends a process that finds a socket of its where
        // nobody listens yet.
        try #require(umockdev_testbed_attach_ioctl(testbed, device.path, handler, &error) != 0)
        let added = umockdev_testbed_add_from_string(
            testbed,
            """
            P: \(device.system.dropFirst(4))
            N: \(device.path.dropFirst(5))
            E: DEVNAME=\(device.path)
            E: SUBSYSTEM=input

            """, &error)
        try #require(added != 0)
        // udev changes its owner: only now can it be asked.  It is a symbolic link here.
        device.isGiven.withLock { $0 = true }
        let directory = try #require(umockdev_testbed_get_root_dir(testbed))
        defer { g_free(directory) }
        #expect(lchown(String(cString: directory) + device.path, getuid(), getgid()) == 0)
    }

    private static func answer(_ client: UnsafeMutablePointer<UMockdevIoctlClient>, _ device: Device) {
        let request = umockdev_ioctl_client_get_request(client)
        let size = cumockdev_ioctl_size(request)
        guard let bytes = device.answer(UInt(request)), size > 0,
            let argument = umockdev_ioctl_client_get_arg(client),
            let memory = umockdev_ioctl_data_resolve(argument, 0, size, nil), let data = memory.pointee.data
        else {
            umockdev_ioctl_client_complete(client, -1, ENOTTY)
            return
        }
        defer { g_object_unref(memory) }
        for (index, byte) in bytes.prefix(Int(size)).enumerated() { data[index] = byte }
        umockdev_ioctl_client_complete(client, glong(bytes.count), 0)
    }

    func remove(_ device: Device) {
        umockdev_testbed_remove_device(testbed, device.system)
        guard let directory = umockdev_testbed_get_root_dir(testbed) else { return }
        defer { g_free(directory) }
        unlink(String(cString: directory) + device.path)
    }

    /// Sends events as the kernel does.
    func send(_ events: [(type: Int32, code: Int32, value: Int32)], of device: Device) {
        let file = umockdev_testbed_get_dev_fd(testbed, device.path)
        var list = events.map { event in
            var made = input_event()
            (made.type, made.code, made.value) = (UInt16(event.type), UInt16(event.code), event.value)
            return made
        }
        let size = list.count * MemoryLayout<input_event>.stride
        #expect(write(file, &list, size) == size)
    }
}

/// The states of headphones as they come.
private final class States: Sendable {
    private let seen = Mutex<[Bool]>([])
    private let task = Mutex<Task<Void, Never>?>(nil)

    init() {
        let states = KioskHeadphones.automatic.states()
        task.withLock { task in
            task = Task { [weak self] in
                for await state in states { self?.seen.withLock { $0.append(state) } }
            }
        }
    }

    deinit { task.withLock { $0?.cancel() } }

    func wait(_ expected: [Bool], _ location: SourceLocation = #_sourceLocation) async throws {
        try await TestSupport.wait(for: "state") { seen.withLock { $0.count >= expected.count } }
        #expect(seen.withLock { $0 } == expected, sourceLocation: location)
    }
}

/// The switch in a headphone socket, as umockdev plays it.
@Suite(.preloaded, .serialized, .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct HeadphoneTests {
    private static let headphone = UInt8(1) << UInt8(SW_HEADPHONE_INSERT)
    private static let lid = UInt8(1) << UInt8(SW_LID)

    private let inputs = MockInputs()

    @Test("in and out; other switches and other devices do not count") func plugs() async throws {
        let lid = MockInputs.Device(0, switches: Self.lid)
        let jack = MockInputs.Device(5, switches: Self.headphone | Self.lid)
        try inputs.add(lid)
        try inputs.add(jack)
        let states = States()
        try await states.wait([false])
        #expect(lid.asked.withLock { $0 } == 0)
        inputs.send([(EV_SW, SW_LID, 1), (EV_SYN, SYN_REPORT, 0)], of: jack)
        inputs.send([(EV_KEY, SW_HEADPHONE_INSERT, 1), (EV_SYN, SYN_REPORT, 0)], of: jack)
        inputs.send([(EV_SW, SW_HEADPHONE_INSERT, 1), (EV_SYN, SYN_REPORT, 0)], of: jack)
        try await states.wait([false, true])
        inputs.send([(EV_SW, SW_HEADPHONE_INSERT, 0), (EV_SYN, SYN_REPORT, 0)], of: jack)
        try await states.wait([false, true, false])
    }

    @Test("a headphone that was there before is known from the beginning") func before() async throws {
        let jack = MockInputs.Device(1, switches: Self.headphone)
        jack.isOn.withLock { $0 = true }
        try inputs.add(jack)
        let states = States()
        try await states.wait([true])
    }

    @Test("lost events: the device is asked for its state") func dropped() async throws {
        let jack = MockInputs.Device(1, switches: Self.headphone)
        try inputs.add(jack)
        let states = States()
        try await states.wait([false])
        jack.isOn.withLock { $0 = true }
        inputs.send([(EV_SYN, SYN_DROPPED, 0), (EV_SYN, SYN_REPORT, 0)], of: jack)
        try await states.wait([false, true])
    }

    @Test("sockets come and go; one headphone of two is enough") func hotplug() async throws {
        let first = MockInputs.Device(1, switches: Self.headphone)
        try inputs.add(first)
        let states = States()
        try await states.wait([false])
        let second = MockInputs.Device(2, switches: Self.headphone)
        second.isOn.withLock { $0 = true }
        try inputs.add(second)
        try await states.wait([false, true])
        // Events that were lost behind this one: when the device has been asked for its state, it was read.
        first.isOn.withLock { $0 = true }
        inputs.send([(EV_SW, SW_HEADPHONE_INSERT, 1), (EV_SYN, SYN_DROPPED, 0)], of: first)
        try await wait(for: "question") { first.asked.withLock { $0 == 2 } }
        inputs.remove(second)
        // One that is opened afterwards: when it has been asked, the other is known to be gone.
        let third = MockInputs.Device(3, switches: Self.headphone)
        try inputs.add(third)
        try await wait(for: "question") { third.asked.withLock { $0 > 0 } }
        try await states.wait([false, true])
        inputs.send([(EV_SW, SW_HEADPHONE_INSERT, 0)], of: first)
        try await states.wait([false, true, false])
    }
}

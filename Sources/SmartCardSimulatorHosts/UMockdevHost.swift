#if UMockdev

import CUMockdev
import Dispatch
import Glibc
public import SmartCardSimulator
import Waiting

/// A host that puts a software USB device on a mock USB bus for unchanged programs: libusb, libccid and pcscd, lsusb.
///
/// The bus is a directory with sysfs and device files, made by umockdev.  A program that uses it, this one included,
/// has umockdev's preload library loaded (``preloadLibrary``) and runs with the variables of ``environment``.  The bus
/// needs neither root nor a kernel with USB support.
///
/// ioctls are answered on umockdev's own thread; the device is called on that thread alone.  A program that waits for a
/// transfer sleeps in poll(2): the device file becomes writable when a transfer is ready to reap, as with usbfs.
public final class UMockdevHost: Sendable {
    /// The library that LD_PRELOAD must name.
    public static let preloadLibrary = "libumockdev-preload.so.0"

    /// True if this process can hold a mock bus: the preload library is loaded.
    public static var isAvailable: Bool { dlopen(preloadLibrary, RTLD_LAZY | RTLD_NOLOAD) != nil }

    /// The variables that make a program use this bus, and no others.
    public var environment: [String: String] { ["UMOCKDEV_DIR": root, "LD_PRELOAD": Self.preloadLibrary] }

    /// The directory that holds the mock bus, until it is closed.
    public let root: String

    private struct State: Sendable {
        var testbed: Testbed?
        var plugged: PluggedDevice?
        /// The last device number, at first the root hub's.
        var lastNumber = 1
    }

    private let state: Lock<State>
    private let departures = DispatchQueue(label: "umockdev-host")

    /// A bus with nothing on it.  There can be one in a process at a time: umockdev finds it by a variable.
    ///
    /// - Throws: ``HostError`` if the preload library is not loaded.
    public init() throws {
        guard Self.isAvailable else {
            throw HostError(
                "the umockdev preload library is not loaded",
                hint:
                    "Install it, sudo apt-get install umockdev, and start this program with LD_PRELOAD=\(Self.preloadLibrary)."
            )
        }
        let testbed = Testbed()
        root = testbed.root
        state = Lock(State(testbed: testbed))
    }

    deinit { close() }

    public var isPlugged: Bool { state.withLock { $0.plugged != nil } }

    /// True if a program has claimed an interface of the device and has not released it.
    package var isClaimed: Bool { state.withLock { $0.plugged?.file.isClaimed ?? false } }

    /// Plugs the device in under a new device number, and notifies all udev listeners.  A device that is plugged in
    /// already leaves first.
    ///
    /// - Throws: ``HostError`` if umockdev cannot take it, or the bus is closed.
    public func plug(_ device: any SoftwareUSBDevice) throws {
        try state.withLock { state in
            guard let testbed = state.testbed else {
                throw HostError("the mock USB bus is closed", hint: "Make a new one.")
            }
            state.plugged?.remove(from: testbed)
            state.plugged = nil
            state.lastNumber = state.lastNumber >= 127 ? 2 : state.lastNumber + 1
            state.plugged = try PluggedDevice(device, on: testbed, number: state.lastNumber) { [weak self] file in
                // The device leaves by itself, perhaps in the middle of a call of ours.
                self?.departures.async { [weak self] in self?.unplug { $0.file === file } }
            }
        }
    }

    /// Unplugs the device: pending requests of programs end with an error, and all udev listeners are notified.  Does
    /// nothing without a device.
    public func unplug() {
        unplug { _ in true }
    }

    private func unplug(where isMeant: @Sendable (PluggedDevice) -> Bool) {
        state.withLock { state in
            guard let device = state.plugged, isMeant(device), let testbed = state.testbed else { return }
            device.remove(from: testbed)
            state.plugged = nil
        }
    }

    /// Notifies all udev listeners of the device once more, as `udevadm trigger --action=add` does.
    package func announce() {
        state.withLock { state in
            guard let device = state.plugged, let testbed = state.testbed else { return }
            testbed.announce("add", of: device.path)
        }
    }

    /// Unplugs the device and removes the bus with its directory.
    public func close() {
        unplug()
        state.withLock { $0.testbed = nil }
    }

    /// Protects the current udev listeners from programs that are started later.
    ///
    /// umockdev names a listener's socket by its file descriptor, and a second process with the same number takes the
    /// name away.  Under another name the socket stays reachable.
    func keepListeners() {
        for (index, name) in directoryEntries(root).filter({ $0.hasPrefix("event") }).enumerated() {
            guard !name.hasPrefix("event00") else { continue }
            var path = "\(root)/event00\(index)"
            while access(path, F_OK) == 0 { path += "0" }
            rename("\(root)/\(name)", path)
        }
    }
}

/// umockdev's directory tree, and the calls that change it.
private final class Testbed: @unchecked Sendable {
    // umockdev locks the data that its own thread shares; the calls here are made under the host's lock.
    private let testbed = umockdev_testbed_new()
    private var served: Set<String> = []
    let root: String

    init() {
        cumockdev_expect_open_clients()
        let directory = umockdev_testbed_get_root_dir(testbed)
        root = directory.map { String(cString: $0) } ?? ""
        g_free(directory)
    }

    deinit { g_object_unref(testbed) }

    /// Adds a device, and notifies all listeners.
    func add(_ description: String) throws {
        waitForListeners()
        var error: UnsafeMutablePointer<GError>?
        guard umockdev_testbed_add_from_string(testbed, description, &error) == 0 else { return }
        throw hostError("umockdev takes no such device", error)
    }

    /// Attaches `handler` to `node`, in place of the previous handler.
    ///
    /// A device that has left is still answered for until its number is reused, so that a program that finds its file
    /// at the last moment gets ENODEV.  Without an answer umockdev's library ends the program.
    func attach(_ handler: UnsafeMutablePointer<UMockdevIoctlBase>?, to node: String) throws {
        var error: UnsafeMutablePointer<GError>?
        if served.remove(node) != nil, umockdev_testbed_detach_ioctl(testbed, node, &error) == 0 {
            g_clear_error(&error)
        }
        guard umockdev_testbed_attach_ioctl(testbed, node, handler, &error) != 0 else {
            throw hostError("umockdev cannot serve \(node)", error)
        }
        served.insert(node)
    }

    /// Notifies all listeners of what happens to a device: `add` or `remove`.
    func announce(_ action: String, of path: String) {
        waitForListeners()
        umockdev_testbed_uevent(testbed, path, action)
    }

    func remove(_ path: String) { umockdev_testbed_remove_device(testbed, path) }

    /// Waits until every listener can take another event.
    ///
    /// umockdev ends the process if a listener cannot take one.  A listener that cannot take one after half a minute no
    /// longer listens.  pcscd does not listen while it adds or removes a reader.
    private func waitForListeners() {
        for name in directoryEntries(root) where name.hasPrefix("event") {
            let path = "\(root)/\(name)"
            if !UnixSocket.takesDatagrams(path, within: .seconds(30)) { unlink(path) }
        }
    }

    private func hostError(_ what: String, _ error: UnsafeMutablePointer<GError>?) -> HostError {
        var error = error
        defer { g_clear_error(&error) }
        let reason = error.flatMap { $0.pointee.message }.map { String(cString: $0) } ?? "no reason given"
        return HostError(
            "\(what): \(reason)", hint: "Check that umockdev 0.17 or newer is installed and TMPDIR is writable.")
    }
}

/// The device while it is on the bus: its sysfs entries, its device file and its ioctl handler.
private final class PluggedDevice: Sendable {
    let file: USBDeviceFile
    private let device: any SoftwareUSBDevice
    private let node: String
    let path: String
    private let interfacePaths: [String]

    /// - Parameter departed: called when the device leaves by itself, on any thread.
    init(
        _ device: any SoftwareUSBDevice, on testbed: Testbed, number: Int,
        departed: @escaping @Sendable (USBDeviceFile) -> Void
    ) throws {
        let description = SysfsDescription(device, number: number)
        node = description.node
        path = description.path
        interfacePaths = description.interfaces.map(\.path)
        try testbed.add(description.device)
        let signal = try ReapableSignal(replacing: "\(testbed.root)\(node)")
        let file = USBDeviceFile(device) { signal.set($0) }
        self.file = file
        self.device = device
        let handler = IoctlAnswerer.makeHandler(file)
        defer { handler.map { g_object_unref($0) } }
        try testbed.attach(handler, to: node)
        device.observe { event in
            file.deviceDid(event)
            if event == .unplugged { departed(file) }
        }
        // Drivers look for interfaces: the device file is in place when they hear of one.
        for interface in description.interfaces { try testbed.add(interface.text) }
    }

    func remove(from testbed: Testbed) {
        // The device and its file know each other until now.
        device.observe { _ in }
        file.unplug()
        for interface in interfacePaths { testbed.announce("remove", of: interface) }
        testbed.announce("remove", of: path)
        for interface in interfacePaths { testbed.remove(interface) }
        testbed.remove(path)
        unlink("\(testbed.root)\(node)")
        // umockdev 0.17 leaves these, and then takes no second device of the same name.
        for name in ([path] + interfacePaths).compactMap({ $0.split(separator: "/").last }) {
            unlink("\(testbed.root)/sys/bus/usb/devices/\(name)")
            unlink("\(testbed.root)/sys/class/usb/\(name)")
        }
    }
}

/// Makes a device file that is writable exactly when the programs that have it open shall reap: a named pipe that is
/// full as long as there is nothing.
private final class ReapableSignal: Sendable {
    private let descriptor: Int32
    private let isSet = Lock(false)

    /// - Parameter path: an ordinary file, which the pipe replaces.
    init(replacing path: String) throws {
        unlink(path)
        guard mkfifo(path, 0o666) == 0, case let descriptor = Glibc.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC),
            descriptor >= 0
        else {
            throw HostError(
                "cannot make a device file in \(path): \(String(cString: strerror(errno)))",
                hint: "Check that TMPDIR names a directory on a file system with room and named pipes.")
        }
        self.descriptor = descriptor
        fill()
    }

    deinit { Glibc.close(descriptor) }

    func set(_ reapable: Bool) {
        isSet.withLock { isSet in
            guard reapable != isSet else { return }
            isSet = reapable
            if reapable { drain() } else { fill() }
        }
    }

    private func fill() {
        let page = [UInt8](repeating: 0, count: Self.page)
        while write(descriptor, page, page.count) > 0 {}
    }

    private func drain() {
        var page = [UInt8](repeating: 0, count: Self.page)
        _ = read(descriptor, &page, page.count)
    }

    /// A pipe is writable again when a whole page of it is free (pipe(7)).
    private static let page = 4096
}

/// Carries ioctls from umockdev's thread to the device file and the results back.
private final class IoctlAnswerer: @unchecked Sendable {
    private let file: USBDeviceFile
    // Touched on umockdev's thread only.
    private var opens: [UnsafeMutablePointer<UMockdevIoctlClient>: OpenFile] = [:]

    /// An open device file and the memory of its transfers: umockdev writes back what was resolved at SUBMITURB.
    private struct OpenFile {
        let open: USBDeviceFile.Open
        var transfers: [UInt: UnsafeMutablePointer<UMockdevIoctlData>] = [:]
    }

    private init(_ file: USBDeviceFile) { self.file = file }

    /// Makes the handler that umockdev calls.  Its own object answers, which lives as long as it is attached or a
    /// program has the file open.
    static func makeHandler(_ file: USBDeviceFile) -> UnsafeMutablePointer<UMockdevIoctlBase>? {
        guard let handler = umockdev_ioctl_base_new() else { return nil }
        let context = Unmanaged.passRetained(IoctlAnswerer(file)).toOpaque()
        cumockdev_on_connected(
            handler, { _, client, context in IoctlAnswerer.from(context)?.connected(client) }, context)
        cumockdev_on_ioctl(
            handler, { _, client, context in IoctlAnswerer.from(context)?.answer(client) == true ? 1 : 0 }, context,
            { context, _ in context.map { Unmanaged<IoctlAnswerer>.fromOpaque($0).release() } })
        return handler
    }

    private static func from(_ context: gpointer?) -> IoctlAnswerer? {
        context.map { Unmanaged<IoctlAnswerer>.fromOpaque($0).takeUnretainedValue() }
    }

    private func connected(_ client: UnsafeMutablePointer<UMockdevIoctlClient>?) {
        guard let client else { return }
        opens[client] = OpenFile(open: file.open())
        cumockdev_on_closed(
            client,
            { client, _, context in
                guard let client, umockdev_ioctl_client_get_connected(client) == 0 else { return }
                IoctlAnswerer.from(context)?.closed(client)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func closed(_ client: UnsafeMutablePointer<UMockdevIoctlClient>) {
        guard let open = opens.removeValue(forKey: client) else { return }
        file.close(open.open)
        for data in open.transfers.values { g_object_unref(data) }
    }

    // MARK: ioctls

    /// Answers an ioctl.
    ///
    /// - Returns: true if the ioctl was understood; it has then been completed.
    private func answer(_ client: UnsafeMutablePointer<UMockdevIoctlClient>?) -> Bool {
        guard let client, let open = opens[client]?.open, let argument = umockdev_ioctl_client_get_arg(client) else {
            return false
        }
        let request = umockdev_ioctl_client_get_request(client)
        guard let (result, error) = perform(request, argument, of: client, open) else { return false }
        umockdev_ioctl_client_complete(client, error == 0 ? result : -1, error)
        return true
    }

    private typealias Memory = UnsafeMutablePointer<UMockdevIoctlData>

    /// - Returns: the result of ioctl(2) and errno; nil for an ioctl that a USB device file does not know.
    private func perform(
        _ request: gulong, _ argument: Memory, of client: UnsafeMutablePointer<UMockdevIoctlClient>,
        _ open: USBDeviceFile.Open
    ) -> (glong, Int32)? {
        // An ioctl without size carries its argument by value.
        let value = argument.bytes.load(UInt.self) ?? 0
        if request == gulong(CUMOCKDEV_DISCARDURB) { return (0, file.discard(value, by: open)) }
        if request == gulong(CUMOCKDEV_RESET) { return (0, file.reset()) }
        if request == gulong(CUMOCKDEV_GET_SPEED) { return (2, 0) }  // USB_SPEED_FULL

        let size = cumockdev_ioctl_size(request)
        guard size > 0, let memory = resolve(argument, offset: 0, length: size) else { return (0, ENOTTY) }
        let number = memory.bytes.load(UInt32.self) ?? 0
        switch request {
        case gulong(CUMOCKDEV_GET_CAPABILITIES):
            memory.bytes.store(capabilities, at: 0)
            return (0, 0)
        case gulong(CUMOCKDEV_CLAIMINTERFACE), gulong(CUMOCKDEV_DISCONNECT_CLAIM):
            return (0, file.claim(interface: number, by: open))
        case gulong(CUMOCKDEV_RELEASEINTERFACE):
            return (0, file.release(interface: number, by: open))
        case gulong(CUMOCKDEV_GETDRIVER), gulong(CUMOCKDEV_IOCTL):
            return (0, ENODATA)  // no kernel driver is bound
        case gulong(CUMOCKDEV_SETCONFIGURATION), gulong(CUMOCKDEV_SETINTERFACE), gulong(CUMOCKDEV_CLEAR_HALT),
            gulong(CUMOCKDEV_RESETEP):
            return (0, file.isPlugged ? 0 : ENODEV)
        case gulong(CUMOCKDEV_SUBMITURB):
            return (0, submit(memory, of: client, open))
        case gulong(CUMOCKDEV_REAPURB), gulong(CUMOCKDEV_REAPURBNDELAY):
            return (0, reap(into: memory, of: client, open))
        case gulong(CUMOCKDEV_CONTROL):
            return control(memory)
        default:
            return (0, ENOTTY)
        }
    }

    private let capabilities = UInt32(
        USBDEVFS_CAP_ZERO_PACKET | USBDEVFS_CAP_NO_PACKET_SIZE_LIM | USBDEVFS_CAP_BULK_SCATTER_GATHER
            | USBDEVFS_CAP_REAP_AFTER_DISCONNECT)

    private func submit(
        _ memory: Memory, of client: UnsafeMutablePointer<UMockdevIoctlClient>, _ open: USBDeviceFile.Open
    ) -> Int32 {
        guard let urb = memory.bytes.load(usbdevfs_urb.self) else { return EINVAL }
        let kind: USBDeviceFile.Transfer.Kind
        switch Int32(urb.type) {
        case USBDEVFS_URB_TYPE_CONTROL: kind = .control
        case USBDEVFS_URB_TYPE_BULK: kind = .bulk
        case USBDEVFS_URB_TYPE_INTERRUPT: kind = .interrupt
        default: return EINVAL
        }
        guard 0...0x100_0000 ~= urb.buffer_length else { return EINVAL }
        var buffer: [UInt8] = []
        if urb.buffer_length > 0 {
            guard
                let memory = resolve(memory, offset: UInt(Self.bufferOffset), length: gsize(urb.buffer_length))
            else { return EFAULT }
            buffer = Array(memory.bytes)
        }
        let address = UInt(memory.pointee.client_addr)
        let old = opens[client]?.transfers.updateValue(memory, forKey: address)
        g_object_ref(memory)
        if let old { g_object_unref(old) }
        let error = file.submit(
            .init(address: address, kind: kind, endpoint: urb.endpoint, buffer: buffer), by: open)
        if error != 0, let memory = opens[client]?.transfers.removeValue(forKey: address) { g_object_unref(memory) }
        return error
    }

    private func reap(
        into pointer: Memory, of client: UnsafeMutablePointer<UMockdevIoctlClient>, _ open: USBDeviceFile.Open
    ) -> Int32 {
        guard let done = file.reap(open) else { return file.isPlugged ? EAGAIN : ENODEV }
        guard let memory = opens[client]?.transfers.removeValue(forKey: done.address) else { return EAGAIN }
        defer { g_object_unref(memory) }
        if !done.data.isEmpty,
            let urb = memory.bytes.load(usbdevfs_urb.self),
            let buffer = resolve(memory, offset: UInt(Self.bufferOffset), length: gsize(urb.buffer_length))
        {
            let isControl = Int32(urb.type) == USBDEVFS_URB_TYPE_CONTROL
            buffer.bytes.store(done.data, at: isControl ? 8 : 0)
        }
        memory.bytes.store(done.status, at: Self.statusOffset)
        memory.bytes.store(Int32(clamping: done.length), at: Self.actualLengthOffset)
        umockdev_ioctl_data_set_ptr(pointer, 0, memory)
        return 0
    }

    private func control(_ memory: Memory) -> (glong, Int32) {
        guard file.isPlugged else { return (0, ENODEV) }
        guard let request = memory.bytes.load(usbdevfs_ctrltransfer.self) else { return (0, EINVAL) }
        let setup =
            [request.bRequestType, request.bRequest]
            + [request.wValue, request.wIndex, request.wLength].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        let buffer =
            request.wLength == 0
            ? nil : resolve(memory, offset: UInt(Self.controlDataOffset), length: gsize(request.wLength))
        let isIn = request.bRequestType & 0x80 != 0
        guard let answer = file.control(setup: setup, data: isIn ? [] : buffer.map { Array($0.bytes) } ?? []) else {
            return (0, EPIPE)
        }
        buffer?.bytes.store(isIn ? answer : [], at: 0)
        return (isIn ? answer.count : Int(request.wLength), 0)
    }

    private static let bufferOffset = MemoryLayout<usbdevfs_urb>.offset(of: \.buffer) ?? 16
    private static let statusOffset = MemoryLayout<usbdevfs_urb>.offset(of: \.status) ?? 4
    private static let actualLengthOffset = MemoryLayout<usbdevfs_urb>.offset(of: \.actual_length) ?? 28
    private static let controlDataOffset = MemoryLayout<usbdevfs_ctrltransfer>.offset(of: \.data) ?? 16

    /// The memory of the calling program that the pointer at `offset` names.  Nil for a null pointer, or a program that
    /// has gone.
    private func resolve(_ memory: Memory, offset: UInt, length: gsize) -> Memory? {
        var error: UnsafeMutablePointer<GError>?
        let resolved = umockdev_ioctl_data_resolve(memory, gsize(offset), length, &error)
        g_clear_error(&error)
        // The parent keeps it; the reference that came with it would be one too many.
        if let resolved { g_object_unref(resolved) }
        return resolved
    }
}

extension UnsafeMutablePointer<UMockdevIoctlData> {
    fileprivate var bytes: UnsafeMutableRawBufferPointer {
        .init(start: pointee.data, count: Int(max(0, pointee.data_len)))
    }
}

extension UnsafeMutableRawBufferPointer {
    /// The value at the start; nil if there are fewer bytes.
    fileprivate func load<Value>(_ type: Value.Type) -> Value? {
        count >= MemoryLayout<Value>.size ? baseAddress?.assumingMemoryBound(to: type).pointee : nil
    }

    /// Writes as much as there is room for.
    fileprivate func store(_ bytes: [UInt8], at offset: Int) {
        guard offset <= count else { return }
        UnsafeMutableRawBufferPointer(rebasing: self[offset...]).copyBytes(from: bytes.prefix(count - offset))
    }

    fileprivate func store<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, at offset: Int) {
        guard offset + MemoryLayout<Value>.size <= count else { return }
        storeBytes(of: value, toByteOffset: offset, as: Value.self)
    }
}

#endif

import CSmartCardUSB
import Dispatch
import Glibc
package import Synchronization
import Waiting

/// The machine's USB through libusb.  This file alone calls it.
package final class LibUSBBus: USBBus {
    private struct State {
        var context: LibUSBContext?
        /// What sysfs showed at the last look.
        var seen: Set<USBAddress> = []
    }

    private let state = Lock(State())
    private let watchers = Watchers(keeping: .newest(1))
    /// Whether udev tells of devices that come and go.  Without it libusb's list stays as it was at first, and the bus is
    /// looked at on a timer.
    private let isTold: Bool
    /// Whether libusb is asked to tell.
    private let listens: Bool
    private let pause: Duration

    /// - Parameters:
    ///   - isTold: nil for what the system shows: events come from udevd, which containers do not have.
    ///   - listens: false not even to ask libusb for what it is told.
    ///   - pause: between two looks where it is not.
    package init(isTold: Bool? = nil, listens: Bool = true, pause: Duration = .seconds(1)) {
        self.listens = listens
        self.isTold = isTold ?? (access("/run/udev/control", F_OK) == 0)
        self.pause = pause
    }

    package func devices() async throws(USBError) -> [USBDevice] {
        let context = try openContext()
        let devices = try await context.queue.blocking { () throws(USBError) in try context.devices() }
        guard !isTold || !context.isTold, isStale(devices) else { return devices }
        let new = try renewedContext()
        return try await new.queue.blocking { () throws(USBError) in try new.devices() }
    }

    package func open(_ device: USBDevice, interface: UInt8) async throws(USBError) -> any USBLink {
        let context = try openContext()
        return try await context.queue.blocking { () throws(USBError) in
            try LibUSBLink(context, device, interface: interface)
        }
    }

    package func changes() throws(USBError) -> AsyncStream<Void> {
        let context = try openContext()
        let changes = watchers.stream()
        guard !isTold || !context.isTold else { return changes }
        return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { [pause] continuation in
            // Perhaps somebody tells after all.
            let listener = Task { for await _ in changes { continuation.yield() } }
            let timer = Task {
                while (try? await Task.sleep(for: pause)) != nil { continuation.yield() }
                continuation.finish()
            }
            continuation.onTermination = { _ in
                listener.cancel()
                timer.cancel()
            }
        }
    }

    /// Whether the bus has changed since the last look, and `devices` has not.
    private func isStale(_ devices: [USBDevice]) -> Bool {
        let present = Sysfs.devices
        return state.withLock { state in
            defer { state.seen = present }
            return state.seen != present && Set(devices.map { USBAddress(bus: $0.bus, device: $0.address) }) != present
        }
    }

    /// Made when it is first needed, and kept: its thread sleeps while there is nothing to do.
    private func openContext() throws(USBError) -> LibUSBContext {
        try state.withLock { (state) throws(USBError) in
            if let context = state.context { return context }
            let new = try LibUSBContext(watchers, listens: listens)
            state.context = new
            return new
        }
    }

    /// One that has looked at the bus anew.  The one before goes with the last link over it.
    private func renewedContext() throws(USBError) -> LibUSBContext {
        let new = try LibUSBContext(watchers, listens: listens)
        state.withLock { $0.context = new }
        return new
    }
}

/// Sends when devices have come or gone.
private typealias Watchers = Multicast<Void>

/// A libusb context, the thread that waits for its events, and a queue for its calls that block.
private final class LibUSBContext: @unchecked Sendable {
    // libusb locks by itself what is reached through it.
    let pointer: OpaquePointer
    let queue = DispatchQueue(label: "libusb")
    private let watchers: Watchers
    /// Whether libusb tells of devices that come and go.
    let isTold: Bool
    private var callback: libusb_hotplug_callback_handle = 0
    /// The event thread's, which ends after the context.
    private let isOver = Flag()

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    /// What the event thread is given.
    private final class Loop {
        let pointer: OpaquePointer
        let isOver: Flag

        init(_ pointer: OpaquePointer, until isOver: Flag) { (self.pointer, self.isOver) = (pointer, isOver) }

        /// libusb wakes for descriptors, for the timeouts of transfers and when it is told to; else it sleeps.
        func run() {
            while !isOver.value.load(ordering: .acquiring) {
                var limit = timeval(tv_sec: 3600, tv_usec: 0)
                if libusb_handle_events_timeout_completed(pointer, &limit, nil) != 0 { usleep(10_000) }
                USBUse.wakeUps.add(1, ordering: .relaxed)
            }
            libusb_exit(pointer)
        }
    }

    /// - Parameter watchers: outlive all contexts of a bus.
    init(_ watchers: Watchers, listens: Bool) throws(USBError) {
        self.watchers = watchers
        var pointer: OpaquePointer?
        let status = libusb_init(&pointer)
        guard status == 0, let pointer else {
            throw USBError(.noBus, USBStatus(rawValue: status))
        }
        self.pointer = pointer
        let events =
            Int32(LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED.rawValue) | Int32(LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT.rawValue)
        let any = cusb_hotplug_match_any()
        isTold =
            listens
            && libusb_hotplug_register_callback(
                pointer, events, 0, any, any, any,
                { _, _, _, watchers in
                    guard let watchers else { return 0 }
                    Unmanaged<Watchers>.fromOpaque(watchers).takeUnretainedValue().send(())
                    return 0
                }, Unmanaged.passUnretained(watchers).toOpaque(), &callback) == 0
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { loop in
                if let loop { Unmanaged<Loop>.fromOpaque(loop).takeRetainedValue().run() }
                return nil
            }, Unmanaged.passRetained(Loop(pointer, until: isOver)).toOpaque())
        pthread_detach(thread)
    }

    /// Nothing is open any more: a link keeps its context.
    deinit {
        if isTold { libusb_hotplug_deregister_callback(pointer, callback) }
        isOver.value.store(true, ordering: .releasing)
        libusb_interrupt_event_handler(pointer)
    }

    // MARK: Devices

    func devices() throws(USBError) -> [USBDevice] {
        try withDevices { list in list.compactMap { USBDevice($0) } }
    }

    /// Finds a device again by its bus and address.
    func withDevice<R>(
        _ device: USBDevice, _ body: (OpaquePointer) throws(USBError) -> R
    ) throws(USBError) -> R {
        try withDevices { (list) throws(USBError) in
            guard
                let found = list.first(where: {
                    libusb_get_bus_number($0) == device.bus && libusb_get_device_address($0) == device.address
                })
            else { throw USBError(.gone, .noDevice) }
            return try body(found)
        }
    }

    private func withDevices<R>(_ body: ([OpaquePointer]) throws(USBError) -> R) throws(USBError) -> R {
        var list: UnsafeMutablePointer<OpaquePointer?>?
        let count = libusb_get_device_list(pointer, &list)
        guard count >= 0 else { throw USBError(.failed, USBStatus(rawValue: Int32(clamping: count))) }
        defer { libusb_free_device_list(list, 1) }
        return try body(UnsafeBufferPointer(start: list, count: count).compactMap(\.self))
    }
}

// MARK: - A claimed interface

/// An open device, one interface of it claimed, and a transfer for each endpoint.
private final class LibUSBLink: USBLink {
    private struct State: @unchecked Sendable {
        // Unchecked: libusb locks what lies behind the handle.  It is closed on the context's queue after the last
        // transfer.
        var handle: OpaquePointer?
        var transfers: [UInt8: LibUSBTransfer] = [:]
        var isClosing = false
    }

    private let context: LibUSBContext
    private let interface: UInt8
    /// bmAttributes by endpoint.
    private let types: [UInt8: UInt8]
    private let state: Lock<State>
    /// Signalled once for each transfer that ends while the link closes.
    private let ended = DispatchSemaphore(value: 0)

    /// - Throws: ``USBError``, which says who is in the way.
    init(_ context: LibUSBContext, _ device: USBDevice, interface: UInt8) throws(USBError) {
        self.context = context
        self.interface = interface
        let endpoints = device.interfaces.first { $0.number == interface }?.endpoints ?? []
        types = Dictionary(
            endpoints.map { ($0.address, $0.attributes & 0x03) }, uniquingKeysWith: { first, _ in first })
        let driver = Sysfs.driver(of: device, interface: interface)
        let handle = try context.withDevice(device) { (found) throws(USBError) in
            var handle: OpaquePointer?
            let status = USBStatus(rawValue: libusb_open(found, &handle))
            guard status.rawValue == 0, let handle else { throw .opening(status) }
            return handle
        }
        var configuration: Int32 = 0
        // A device that has none yet needs one; to set it again would reset the device.
        if libusb_get_configuration(handle, &configuration) == 0, configuration == 0 {
            libusb_set_configuration(handle, Int32(device.configuration))
        }
        // A kernel driver gives way, and gets the interface back when it is released.
        let number = Int32(interface)
        if libusb_kernel_driver_active(handle, number) == 1 { libusb_set_auto_detach_kernel_driver(handle, 1) }
        let status = USBStatus(rawValue: libusb_claim_interface(handle, number))
        guard status.rawValue == 0 else {
            libusb_close(handle)
            throw .claiming(driver: driver, status)
        }
        state = Lock(State(handle: handle))
        USBUse.add(handles: 1)
    }

    deinit { state.withLock { $0.handle }.map(giveBack) }

    // MARK: Transfers

    func write(_ bytes: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion) {
        submit(endpoint, timeout, completion) { transfer in transfer.fill(bytes) }
    }

    func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion) {
        submit(endpoint, timeout, completion) { transfer in transfer.makeRoom(count) }
    }

    func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion) {
        let words = [value, UInt16(interface), 0].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        submit(0x00, timeout, completion) { transfer in transfer.fill([0x21, request] + words) }
    }

    func request(
        _ request: UInt8, value: UInt16, reading count: Int, timeout: Duration, _ completion: @escaping Completion
    ) {
        let words = [value, UInt16(interface), UInt16(clamping: count)].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        submit(0x00, timeout, completion) { transfer in
            transfer.fill([0xA1, request] + words + [UInt8](repeating: 0, count: Int(UInt16(clamping: count))))
        }
    }

    private func submit(
        _ endpoint: UInt8, _ timeout: Duration?, _ completion: @escaping Completion,
        prepare: (LibUSBTransfer) -> Bool
    ) {
        let refusal: USBStatus? = state.withLock { state in
            guard let handle = state.handle, !state.isClosing else { return .noDevice }
            guard let transfer = state.transfers[endpoint] ?? LibUSBTransfer(endpoint, type: types[endpoint] ?? 0)
            else { return .noMemory }
            state.transfers[endpoint] = transfer
            guard !transfer.isPending else { return .busy }
            guard prepare(transfer) else { return .noMemory }
            return transfer.submit(handle, timeout, Pending(link: self, completion: completion))
        }
        if let refusal { completion(.failure(refusal)) }
    }

    /// What a transfer that is under way keeps alive.
    fileprivate struct Pending {
        let link: LibUSBLink
        let completion: Completion
    }

    /// On the event thread.
    fileprivate func end(_ transfer: LibUSBTransfer) {
        let (completion, result, isClosing) = state.withLock { state in
            let (completion, result) = transfer.end()
            return (completion, result, state.isClosing)
        }
        completion?(result)
        if isClosing { ended.signal() }
    }

    func cancel(_ endpoint: UInt8) {
        state.withLock { $0.transfers[endpoint]?.cancel() }
    }

    func clearHalt(_ endpoint: UInt8) async throws(USBStatus) {
        try await context.queue.blocking { [self] () throws(USBStatus) in
            // Only the queue closes the handle.
            guard let handle = state.withLock({ $0.isClosing ? nil : $0.handle }) else { throw .noDevice }
            let status = USBStatus(rawValue: libusb_clear_halt(handle, endpoint))
            guard status.rawValue == 0 else { throw status }
        }
    }

    func reset() async throws(USBStatus) {
        try await context.queue.blocking { [self] () throws(USBStatus) in
            guard let handle = state.withLock({ $0.isClosing ? nil : $0.handle }) else { throw .noDevice }
            let status = USBStatus(rawValue: libusb_reset_device(handle))
            guard status.rawValue == 0 else { throw status }
        }
    }

    // MARK: The end

    func close(_ completion: @escaping @Sendable () -> Void) {
        context.queue.async { [self] in
            let pending: Int = state.withLock { state in
                guard !state.isClosing else { return 0 }
                state.isClosing = true
                let pending = state.transfers.values.filter(\.isPending)
                for transfer in pending { transfer.cancel() }
                return pending.count
            }
            // The kernel ends what is cancelled at once.  If it does not, memory that it writes to must stay.
            let limit = DispatchTime.now() + .seconds(5)
            guard (0..<pending).allSatisfy({ _ in ended.wait(timeout: limit) == .success }) else {
                return completion()
            }
            let handle = state.withLock { state in
                defer { (state.handle, state.transfers) = (nil, [:]) }
                return state.handle
            }
            handle.map(giveBack)
            completion()
        }
    }

    private func giveBack(_ handle: OpaquePointer) {
        libusb_release_interface(handle, Int32(interface))
        libusb_close(handle)
        USBUse.add(handles: -1)
    }
}

/// A libusb transfer and its buffer, for one endpoint.  The link's lock guards it.
private final class LibUSBTransfer: @unchecked Sendable {
    private let pointer: UnsafeMutablePointer<libusb_transfer>
    private var buffer = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)
    private var length = 0
    private var pending: LibUSBLink.Pending?

    /// Nil if there is no memory.
    init?(_ endpoint: UInt8, type: UInt8) {
        guard let pointer = libusb_alloc_transfer(0) else { return nil }
        self.pointer = pointer
        pointer.pointee.endpoint = endpoint
        pointer.pointee.type = type
    }

    deinit {
        libusb_free_transfer(pointer)
        buffer.deallocate()
    }

    var isPending: Bool { pending != nil }

    /// False if there is no memory.
    func makeRoom(_ count: Int) -> Bool {
        if buffer.count < count {
            buffer.deallocate()
            buffer = .allocate(capacity: count)
            buffer.initialize(repeating: 0)
        }
        length = count
        return true
    }

    func fill(_ bytes: [UInt8]) -> Bool {
        guard makeRoom(bytes.count) else { return false }
        _ = buffer.update(from: bytes)
        return true
    }

    /// - Returns: nil if it is under way; it ends by the link's `end` then.
    func submit(_ handle: OpaquePointer, _ timeout: Duration?, _ pending: LibUSBLink.Pending) -> USBStatus? {
        pointer.pointee.dev_handle = handle
        pointer.pointee.buffer = buffer.baseAddress
        pointer.pointee.length = Int32(clamping: length)
        // 0 is for ever.
        pointer.pointee.timeout = timeout.map { UInt32(clamping: max($0.milliseconds, 1)) } ?? 0
        pointer.pointee.user_data = Unmanaged.passRetained(self).toOpaque()
        pointer.pointee.callback = { transfer in
            guard let context = transfer?.pointee.user_data else { return }
            let transfer = Unmanaged<LibUSBTransfer>.fromOpaque(context).takeRetainedValue()
            transfer.pending?.link.end(transfer)
        }
        self.pending = pending
        USBUse.add(transfers: 1)
        let status = USBStatus(rawValue: libusb_submit_transfer(pointer))
        guard status.rawValue == 0 else {
            self.pending = nil
            USBUse.add(transfers: -1)
            Unmanaged.passUnretained(self).release()
            return status
        }
        return nil
    }

    func cancel() { if isPending { libusb_cancel_transfer(pointer) } }

    func end() -> (USBLink.Completion?, Result<[UInt8], USBStatus>) {
        let completion = pending?.completion
        pending = nil
        USBUse.add(transfers: -1)
        // A control transfer's data stand behind its setup packet, which says which way they go.
        let isControl = UInt32(pointer.pointee.type) == LIBUSB_TRANSFER_TYPE_CONTROL.rawValue
        let data = isControl ? buffer.dropFirst(8) : buffer[...]
        let isIn = (isControl ? buffer.first ?? 0 : pointer.pointee.endpoint) & 0x80 != 0
        let count = min(max(Int(pointer.pointee.actual_length), 0), data.count)
        let bytes = isIn ? Array(data.prefix(count)) : []
        return (completion, Self.result(pointer.pointee.status, bytes))
    }

    private static func result(_ status: libusb_transfer_status, _ bytes: [UInt8]) -> Result<[UInt8], USBStatus> {
        switch status {
        case LIBUSB_TRANSFER_COMPLETED: .success(bytes)
        case LIBUSB_TRANSFER_TIMED_OUT: bytes.isEmpty ? .failure(.timeout) : .success(bytes)
        case LIBUSB_TRANSFER_CANCELLED: .failure(.interrupted)
        case LIBUSB_TRANSFER_STALL: .failure(.pipe)
        case LIBUSB_TRANSFER_NO_DEVICE: .failure(.noDevice)
        case LIBUSB_TRANSFER_OVERFLOW: .failure(.overflow)
        default: .failure(.io)
        }
    }
}

/// What this process has of libusb at the moment, so that a test sees that nothing is left over.
package enum USBUse {
    private static let counts = Lock((handles: 0, transfers: 0))
    /// How often the thread that waits for libusb's events has had something to do.
    package static let wakeUps = Atomic(0)

    package static var now: (handles: Int, transfers: Int) { counts.withLock { $0 } }

    fileprivate static func add(handles: Int = 0, transfers: Int = 0) {
        counts.withLock { $0 = ($0.handles + handles, $0.transfers + transfers) }
    }
}

extension Duration {
    fileprivate var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let whole = seconds.multipliedReportingOverflow(by: 1000)
        return whole.overflow ? .max : whole.partialValue + attoseconds / 1_000_000_000_000_000
    }
}

extension USBError {
    fileprivate static func opening(_ status: USBStatus) -> USBError {
        switch status {
        case .access: USBError(.denied, status)
        case .noDevice, .notFound: USBError(.gone, status)
        default: USBError(.failed, status)
        }
    }

    /// - Parameter driver: the kernel driver that has the interface, if one has it.
    fileprivate static func claiming(driver: String?, _ status: USBStatus) -> USBError {
        switch (status, driver) {
        // usbfs is another program.
        case (.busy, let driver?) where driver != "usbfs": USBError(.heldByDriver(driver), status)
        case (.busy, _): USBError(.heldByProgram, status)
        case (.notFound, _): USBError(.gone, status)
        default: USBError(.failed, status)
        }
    }
}

// MARK: - Descriptors

extension USBDevice {
    /// - Returns: nil for a device whose descriptors cannot be read.
    fileprivate init?(_ device: OpaquePointer) {
        var descriptor = libusb_device_descriptor()
        guard libusb_get_device_descriptor(device, &descriptor) == 0 else { return nil }
        var ports = [UInt8](repeating: 0, count: 7)
        let depth = libusb_get_port_numbers(device, &ports, Int32(ports.count))
        self.init(
            bus: libusb_get_bus_number(device), address: libusb_get_device_address(device),
            ports: Array(ports.prefix(max(Int(depth), 0))), vendorID: descriptor.idVendor,
            productID: descriptor.idProduct, release: descriptor.bcdDevice)

        var configuration: UnsafeMutablePointer<libusb_config_descriptor>?
        guard
            libusb_get_active_config_descriptor(device, &configuration) == 0
                || libusb_get_config_descriptor(device, 0, &configuration) == 0, let configuration
        else { return }
        defer { libusb_free_config_descriptor(configuration) }
        self.configuration = configuration.pointee.bConfigurationValue
        interfaces = UnsafeBufferPointer(
            start: configuration.pointee.interface, count: Int(configuration.pointee.bNumInterfaces)
        ).compactMap { interface in
            guard interface.num_altsetting > 0, let setting = interface.altsetting?.pointee else { return nil }
            return USBInterface(setting)
        }
        // Hubs have class 09; their names are of no use to anybody.
        guard interfaces.contains(where: { $0.interfaceClass != 0x09 }) else { return }
        // The kernel has read these when the device was plugged in; nobody has to open it for them.
        manufacturer = Sysfs.attribute("manufacturer", of: self)
        product = Sysfs.attribute("product", of: self)
        serialNumber = Sysfs.attribute("serial", of: self)
        for index in interfaces.indices {
            interfaces[index].name = Sysfs.attribute("interface", of: self, interface: interfaces[index].number)
        }
    }
}

extension USBInterface {
    fileprivate init(_ setting: libusb_interface_descriptor) {
        func bytes(_ start: UnsafePointer<UInt8>?, _ count: Int32) -> [UInt8] {
            Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : max(Int(count), 0)))
        }
        self.init(
            number: setting.bInterfaceNumber, interfaceClass: setting.bInterfaceClass,
            endpoints: UnsafeBufferPointer(
                start: setting.endpoint, count: setting.endpoint == nil ? 0 : Int(setting.bNumEndpoints)
            ).map {
                Endpoint(
                    address: $0.bEndpointAddress, attributes: $0.bmAttributes, packetSize: $0.wMaxPacketSize,
                    extra: bytes($0.extra, $0.extra_length))
            },
            extra: bytes(setting.extra, setting.extra_length))
    }
}

// MARK: - Status

/// What libusb says went wrong, such as `LIBUSB_ERROR_BUSY -6`.
///
/// Open: a value without a name is kept and printed as it is.
public struct USBStatus: RawRepresentable, Error, Hashable, Sendable {
    /// An `enum libusb_error`.
    public var rawValue: Int32

    public init(rawValue: Int32) { self.rawValue = rawValue }

    private init(_ error: libusb_error) { rawValue = error.rawValue }

    public static let io = USBStatus(LIBUSB_ERROR_IO)
    public static let invalidParameter = USBStatus(LIBUSB_ERROR_INVALID_PARAM)
    public static let access = USBStatus(LIBUSB_ERROR_ACCESS)
    public static let noDevice = USBStatus(LIBUSB_ERROR_NO_DEVICE)
    public static let notFound = USBStatus(LIBUSB_ERROR_NOT_FOUND)
    public static let busy = USBStatus(LIBUSB_ERROR_BUSY)
    public static let timeout = USBStatus(LIBUSB_ERROR_TIMEOUT)
    public static let overflow = USBStatus(LIBUSB_ERROR_OVERFLOW)
    /// The endpoint stalled, or refuses the request.
    public static let pipe = USBStatus(LIBUSB_ERROR_PIPE)
    /// The transfer was cancelled.
    public static let interrupted = USBStatus(LIBUSB_ERROR_INTERRUPTED)
    public static let noMemory = USBStatus(LIBUSB_ERROR_NO_MEM)
    public static let notSupported = USBStatus(LIBUSB_ERROR_NOT_SUPPORTED)
    public static let other = USBStatus(LIBUSB_ERROR_OTHER)
}

extension USBStatus: CustomStringConvertible {
    /// libusb's name and the value.
    public var description: String { "\(String(cString: libusb_error_name(rawValue))) \(rawValue)" }
}

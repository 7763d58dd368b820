#if USB

import CLibUSB
import Dispatch
import Glibc
package import Logging
import Synchronization
import Waiting

/// The machine's USB through libusb.  Only this file calls libusb.
package final class LibUSBBus: USBBus {
    private struct State {
        var context: LibUSBContext?
        /// The difference with which libusb was last asked anew.
        var known = Difference()
    }

    private let state = Lock(State())
    private let watchers = Watchers(keeping: .newest(1))
    /// True if udev runs, which reports devices that come and go.  Without udev, libusb's list never changes, and a timer looks
    /// at the bus.
    private let isTold: Bool
    /// The status with which a request for libusb's reports fails, for tests; nil to ask libusb.
    private let refusal: USBStatus?
    private let logger: Logger
    private let pause: Duration
    /// The number of looks after a change that nobody reports.
    private static let looks = 5

    /// - Parameters:
    ///   - isTold: nil to ask the system: events come from udevd, which containers lack.
    ///   - refusal: the status with which a request for libusb's reports fails; nil to ask libusb.
    ///   - pause: the time between two looks without reports, and the time that udev has for one.
    ///   - logger: receives a warning if libusb does not report.
    package init(
        isTold: Bool? = nil, refusal: USBStatus? = nil, pause: Duration = .seconds(1),
        logger: Logger = Logger(label: "USBDevices")
    ) {
        (self.refusal, self.logger) = (refusal, logger)
        self.isTold = isTold ?? (access("/run/udev/control", F_OK) == 0)
        self.pause = pause
    }

    package func devices() async throws(USBError) -> [USBDevice] {
        // From here on no message of udev is missed.
        let tidings = watchers.stream()
        let devices = try await look()
        // Whether udev tells libusb of everything is not known: a container can see udev's files and not hear it, messages are
        // lost, and a mock bus can go.  So each call compares the list with what the kernel shows.
        guard difference(devices) != nil else { return devices.list }
        if isTold, devices.context.isTold {
            // udev tells of a device once it has given the node to its group, a little after the kernel shows it.
            try? await waiting(atMost: pause) { [self] in
                for await _ in tidings { if try await difference(look()) == nil { break } }
            }
            guard !Task.isCancelled else { return devices.list }
        }
        let later = try await look()
        var renewed = later
        // A device may come or leave while the new context looks.  Where there can be no other context, its list is all there is.
        for _ in 0..<Self.looks {
            guard let difference = difference(renewed), let context = try? renew(renewed.context, for: difference)
            else { break }
            renewed = try await look(in: context)
        }
        // The new context knows the device and is told nothing more of it, while its node may still be closed to this program.
        if isTold, !renewed.addresses.isSubset(of: later.addresses) { lookAgain() }
        return renewed.list
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
            // Reports may arrive after all.
            let listener = Task { for await _ in changes { continuation.yield() } }
            let timer = Task {
                // A look at the bus wakes several threads.  Some follow a change, as a node's owner is set after the node.
                var (seen, due): (Set<USBAddress>?, Int) = (nil, 0)
                while (try? await Time.sleep(for: pause)) != nil {
                    let present = Sysfs.devices
                    let isHidden = present == nil && access("/dev/bus/usb", F_OK) == 0
                    due = isHidden || present != seen ? Self.looks : due - 1
                    seen = present
                    if due > 0 { continuation.yield() }
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in
                listener.cancel()
                timer.cancel()
            }
        }
    }

    /// The devices that a context lists, with it.
    private struct Look {
        let context: LibUSBContext
        let list: [USBDevice]
        var addresses: Set<USBAddress> { Set(list.map { USBAddress(bus: $0.bus, device: $0.address) }) }
    }

    /// The devices that sysfs shows and a context's list lacks, and the reverse.
    private struct Difference: Equatable {
        var lacking: Set<USBAddress> = []
        var surplus: Set<USBAddress> = []
    }

    private func look() async throws(USBError) -> Look { try await look(in: openContext()) }

    private func look(in context: LibUSBContext) async throws(USBError) -> Look {
        Look(context: context, list: try await context.list())
    }

    /// Returns how sysfs and a list differ; nil if they agree, or as no new context has changed it.
    private func difference(_ look: Look) -> Difference? {
        let (shown, listed) = (Sysfs.devices ?? [], look.addresses)
        let difference = Difference(lacking: shown.subtracting(listed), surplus: listed.subtracting(shown))
        return state.withLock { state in
            // Another call has made a new context since.
            guard state.context === look.context else { return difference == Difference() ? nil : difference }
            // They agree: what differs from now on is new.
            if difference == Difference() { state.known = difference }
            return difference == state.known ? nil : difference
        }
    }

    /// Has those who watch the bus look at it some times more.
    private func lookAgain() {
        Task { [watchers, pause] in
            for _ in 0..<Self.looks {
                try await Time.sleep(for: pause)
                watchers.send(())
            }
        }
    }

    /// Opens the context on first use and keeps it: its idle thread sleeps.
    private func openContext() throws(USBError) -> LibUSBContext {
        try state.withLock { (state) throws(USBError) in
            if let context = state.context { return context }
            let new = try LibUSBContext(watchers, refusal: refusal)
            state.context = new
            if let status = new.refusal {
                logger.warning(
                    "libusb does not report devices that come and go; the bus is looked at on a timer",
                    metadata: ["status": "\(status)"])
            }
            return new
        }
    }

    /// Returns a context that has looked at the bus anew.  The last link over the old context releases it.
    ///
    /// - Parameter difference: what is wrong with the old one's list.
    private func renew(_ old: LibUSBContext, for difference: Difference) throws(USBError) -> LibUSBContext {
        try state.withLock { (state) throws(USBError) in
            // Another call may have been quicker.
            if let context = state.context, context !== old { return context }
            let new = try LibUSBContext(watchers, refusal: refusal)
            (state.context, state.known) = (new, difference)
            return new
        }
    }
}

/// Notifies when devices come or go.
private typealias Watchers = Multicast<Void>

/// A libusb context, its event thread, and a queue for its blocking calls.
private final class LibUSBContext: @unchecked Sendable {
    // libusb does its own locking of everything behind this pointer.
    let pointer: OpaquePointer
    let queue = DispatchQueue(label: "libusb")
    private let watchers: Watchers
    /// The reason why libusb does not report devices that come and go; nil if it does.
    let refusal: USBStatus?
    var isTold: Bool { refusal == nil }
    private var callback: libusb_hotplug_callback_handle = 0
    /// Signals the event thread, which outlives the context.
    private let isOver = Flag()
    private var hasThread = false

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    /// The event thread's state.
    private final class Loop {
        let pointer: OpaquePointer
        let isOver: Flag

        init(_ pointer: OpaquePointer, until isOver: Flag) { (self.pointer, self.isOver) = (pointer, isOver) }

        /// Runs libusb's event loop.  It wakes for descriptors, transfer timeouts and interrupts; otherwise it sleeps.
        func run() {
            while !isOver.value.load(ordering: .acquiring) {
                var limit = timeval(tv_sec: 3600, tv_usec: 0)
                if libusb_handle_events_timeout_completed(pointer, &limit, nil) != 0 { usleep(10_000) }
                USBUse.wakeUps.add(1, ordering: .relaxed)
            }
            libusb_exit(pointer)
        }
    }

    /// - Parameter watchers: outlives all contexts of a bus.
    init(_ watchers: Watchers, refusal: USBStatus?) throws(USBError) {
        self.watchers = watchers
        var pointer: OpaquePointer?
        let outcome = libusb_init(&pointer)
        guard outcome == 0, let pointer else {
            throw USBError(.noBus, USBStatus(rawValue: outcome))
        }
        self.pointer = pointer
        let events =
            Int32(LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED.rawValue) | Int32(LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT.rawValue)
        let any = cusb_hotplug_match_any()
        let status =
            refusal?.rawValue
            ?? libusb_hotplug_register_callback(
                pointer, events, 0, any, any, any,
                { _, _, _, watchers in
                    guard let watchers else { return 0 }
                    Unmanaged<Watchers>.fromOpaque(watchers).takeUnretainedValue().send(())
                    return 0
                }, Unmanaged.passUnretained(watchers).toOpaque(), &callback)
        self.refusal = status == 0 ? nil : USBStatus(rawValue: status)
        var thread = pthread_t()
        let loop = Unmanaged.passRetained(Loop(pointer, until: isOver))
        let created = pthread_create(
            &thread, nil,
            { loop in
                if let loop { Unmanaged<Loop>.fromOpaque(loop).takeRetainedValue().run() }
                return nil
            }, loop.toOpaque())
        guard created == 0 else {
            loop.release()
            throw USBError(.noBus, .noMemory)
        }
        pthread_detach(thread)
        hasThread = true
    }

    /// Nothing is open at this point: each link keeps its context.  Without a thread nobody else ends libusb.
    deinit {
        if isTold { libusb_hotplug_deregister_callback(pointer, callback) }
        guard hasThread else { return libusb_exit(pointer) }
        isOver.value.store(true, ordering: .releasing)
        libusb_interrupt_event_handler(pointer)
    }

    // MARK: Devices

    func list() async throws(USBError) -> [USBDevice] {
        try await queue.blocking { [self] () throws(USBError) in try devices() }
    }

    private func devices() throws(USBError) -> [USBDevice] {
        try withDevices { list in list.compactMap { USBDevice($0) } }
    }

    /// Finds a device by its bus and address.
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

/// An open device with one claimed interface, and a transfer for each endpoint.
private final class LibUSBLink: USBLink {
    private struct State: @unchecked Sendable {
        // Unchecked: libusb locks everything behind the handle.  The context's queue closes it after the last transfer.
        var handle: OpaquePointer?
        var transfers: [UInt8: LibUSBTransfer] = [:]
        var isClosing = false
    }

    private let context: LibUSBContext
    private let interface: UInt8
    /// The bmAttributes by endpoint.
    private let types: [UInt8: UInt8]
    private let state: Lock<State>
    /// Signaled once for each transfer that ends while the link closes.
    private let ended = DispatchSemaphore(value: 0)

    /// - Throws: ``USBError``, which names the obstacle.
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
        // Only an unconfigured device needs a configuration; setting it again would reset the device.
        if libusb_get_configuration(handle, &configuration) == 0, configuration == 0 {
            libusb_set_configuration(handle, Int32(device.configuration))
        }
        // A kernel driver is detached, and attached again on release.
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

    /// The references that keep a transfer's memory alive while it is under way.
    fileprivate struct Pending {
        let link: LibUSBLink
        let completion: Completion
    }

    /// Ends a transfer.  Runs on the event thread.
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
            // The kernel ends a canceled transfer at once.  If it does not, the memory it writes to must stay.
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

/// A libusb transfer and its buffer, for one endpoint, guarded by the link's lock.
private final class LibUSBTransfer: @unchecked Sendable {
    private let pointer: UnsafeMutablePointer<libusb_transfer>
    private var buffer = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)
    private var length = 0
    private var pending: LibUSBLink.Pending?

    /// Returns nil if there is no memory.
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

    /// Returns false if there is no memory.
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

    /// - Returns: nil if the transfer is under way; the link's `end` then ends it.
    func submit(_ handle: OpaquePointer, _ timeout: Duration?, _ pending: LibUSBLink.Pending) -> USBStatus? {
        pointer.pointee.dev_handle = handle
        pointer.pointee.buffer = buffer.baseAddress
        pointer.pointee.length = Int32(clamping: length)
        // 0 means no limit.
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
        // The data of a control transfer follows its setup packet, which gives the direction.
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

    /// - Parameter driver: the kernel driver that holds the interface, if any.
    fileprivate static func claiming(driver: String?, _ status: USBStatus) -> USBError {
        switch (status, driver) {
        // usbfs stands for another program.
        case (.busy, let driver?) where driver != "usbfs": USBError(.heldByDriver(driver), status)
        case (.busy, _): USBError(.heldByProgram, status)
        case (.notFound, _): USBError(.gone, status)
        default: USBError(.failed, status)
        }
    }
}

// MARK: - Descriptors

extension USBDevice {
    /// - Returns: nil for a device with unreadable descriptors.
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
        // Hubs have class 09; nobody needs their names.
        guard interfaces.contains(where: { $0.interfaceClass != 0x09 }) else { return }
        // The kernel read these when the device was plugged in; opening it is unnecessary.
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

#endif

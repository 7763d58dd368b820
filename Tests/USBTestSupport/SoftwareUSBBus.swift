import Dispatch
package import SmartCardSimulator
package import Synchronization
package import USBDevices
import Waiting

/// A USB bus in this process, for software devices: what libusb is to real ones.
package final class SoftwareUSBBus: USBBus {
    private struct State {
        var devices: [UInt8: (device: any SoftwareUSBDevice, description: USBDevice)] = [:]
        var lastAddress: UInt8 = 1
        var watchers: [AsyncStream<Void>.Continuation] = []
        var owners: [UInt8: ObjectIdentifier] = [:]
        var tamper: (@Sendable ([UInt8]) -> [UInt8])?
    }

    private let state = Mutex(State())
    fileprivate let use = Mutex((links: 0, transfers: 0))
    /// What an attempt to open fails with, if anything.
    package let refusal = Mutex<USBError?>(nil)
    /// Changes what comes in from the bulk IN endpoint.
    package var tamper: (@Sendable ([UInt8]) -> [UInt8])? {
        get { state.withLock { $0.tamper } }
        set { state.withLock { $0.tamper = newValue } }
    }

    package init() {}

    package convenience init(_ device: any SoftwareUSBDevice) {
        self.init()
        plug(device)
    }

    /// Interfaces that are claimed and transfers that are under way.
    package var inUse: (links: Int, transfers: Int) { use.withLock { $0 } }

    /// - Parameter change: what the descriptors are to say instead.
    package func plug(
        _ device: any SoftwareUSBDevice, port: UInt8 = 2, _ change: (inout USBDevice) -> Void = { _ in }
    ) {
        let d = device.deviceDescriptor
        func word(_ i: Int) -> UInt16 { UInt16(d[i]) | UInt16(d[i + 1]) << 8 }
        func string(_ i: UInt8) -> String? { i == 0 ? nil : device.strings[Int(i) - 1] }
        state.withLock { state in
            state.devices = state.devices.filter { $0.value.description.ports != [port] }
            state.lastAddress += 1
            var description = USBDevice(
                bus: 1, address: state.lastAddress, ports: [port], vendorID: word(8), productID: word(10),
                release: word(12), manufacturer: string(d[14]), product: string(d[15]), serialNumber: string(d[16]),
                interfaces: interfaces(device.configurationDescriptor))
            change(&description)
            state.devices[state.lastAddress] = (device, description)
        }
        announce()
    }

    package func unplug(port: UInt8 = 2) {
        state.withLock { state in
            state.devices = state.devices.filter { $0.value.description.ports != [port] }
        }
        announce()
    }

    package var isWatched: Bool { state.withLock { !$0.watchers.isEmpty } }

    /// Ends the streams of changes, as a failure of the library would.
    package func endWatches() {
        for watcher in state.withLock({ state in
            defer { state.watchers = [] }
            return state.watchers
        }) { watcher.finish() }
    }

    private func announce() {
        for watcher in state.withLock({ $0.watchers }) { watcher.yield() }
    }

    // MARK: USBBus

    package func devices() async -> [USBDevice] {
        state.withLock { $0.devices.values.map(\.description) }
    }

    package func open(_ device: USBDevice, interface: UInt8) async throws(USBError) -> any USBLink {
        if let refusal = refusal.withLock({ $0 }) { throw refusal }
        guard let found = state.withLock({ $0.devices[device.address]?.device }) else {
            throw USBError(.gone, .noDevice)
        }
        let link = SoftwareUSBLink(found, self)
        let isFree = state.withLock { state in
            guard state.owners[device.address] == nil else { return false }
            state.owners[device.address] = ObjectIdentifier(link)
            return true
        }
        guard isFree else { throw USBError(.heldByProgram, .busy) }
        use.withLock { $0.links += 1 }
        return link
    }

    fileprivate func release(_ link: SoftwareUSBLink) {
        state.withLock { state in
            state.owners = state.owners.filter { $0.value != ObjectIdentifier(link) }
        }
        use.withLock { $0.links -= 1 }
    }

    package func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        state.withLock { $0.watchers.append(continuation) }
        return stream
    }
}

/// The endpoints of a software device.
private final class SoftwareUSBLink: USBLink {
    private struct State {
        var isOpen = true
        var isReleased = false
        var frames: [UInt8: [(bytes: [UInt8], due: Time.Instant)]] = [:]
        var readers: [UInt8: Reader] = [:]
        var readerCount = 0
    }

    private struct Reader {
        let number: Int
        let count: Int
        let completion: Completion
        var limit: Time.Deadline?
    }

    private let device: any SoftwareUSBDevice
    private let bus: SoftwareUSBBus
    private let time = Time.current
    private let completions = DispatchQueue(label: "software-usb-completions")
    private let state = Mutex(State())

    init(_ device: any SoftwareUSBDevice, _ bus: SoftwareUSBBus) {
        (self.device, self.bus) = (device, bus)
        device.observe { [weak self] event in
            guard let self else { return }
            let bus = self.bus
            switch event {
            case .ready(let endpoint, let bytes, let delay):
                let bytes = endpoint == 0x82 ? bus.tamper?(bytes) ?? bytes : bytes
                state.withLock { state in
                    let due = time.now + delay
                    let last = state.frames[endpoint]?.last?.due ?? due
                    state.frames[endpoint, default: []].append((bytes, max(due, last)))
                }
                match(endpoint)
            case .unplugged:
                fail()
            }
        }
    }

    func write(_ bytes: [UInt8], to endpoint: UInt8, timeout: Duration, _ completion: @escaping Completion) {
        guard state.withLock({ $0.isOpen }) else { return completion(.failure(.noDevice)) }
        bus.use.withLock { $0.transfers += 1 }
        device.transferOut(endpoint: endpoint, bytes)
        bus.use.withLock { $0.transfers -= 1 }
        completion(state.withLock { $0.isOpen } ? .success([]) : .failure(.noDevice))
    }

    func read(_ count: Int, from endpoint: UInt8, timeout: Duration?, _ completion: @escaping Completion) {
        device.willTransferIn(endpoint: endpoint)
        let number: Int? = state.withLock { state in
            guard state.isOpen else { return nil }
            state.readerCount += 1
            state.readers[endpoint] = Reader(number: state.readerCount, count: count, completion: completion)
            return state.readerCount
        }
        guard let number else { return completion(.failure(.noDevice)) }
        bus.use.withLock { $0.transfers += 1 }
        match(endpoint)
        guard let timeout else { return }
        let limit = time.deadline(after: timeout) { [weak self] in
            self?.finish(endpoint, number: number, .failure(.timeout))
        }
        let isWaiting = state.withLock { state in
            guard state.readers[endpoint]?.number == number else { return false }
            state.readers[endpoint]?.limit = limit
            return true
        }
        if !isWaiting { limit.lift() }
    }

    func request(_ request: UInt8, value: UInt16, timeout: Duration, _ completion: @escaping Completion) {
        let setup = [0x21, request, UInt8(value & 0xFF), UInt8(value >> 8), 0, 0, 0, 0]
        completion(device.control(setup: setup, data: []) == nil ? .failure(.pipe) : .success([]))
    }

    func cancel(_ endpoint: UInt8) { finish(endpoint, number: nil, .failure(.interrupted)) }

    func clearHalt(_ endpoint: UInt8) async throws(USBStatus) {}
    func reset() async throws(USBStatus) { device.reset() }

    func close(_ completion: @escaping @Sendable () -> Void) {
        let isFirst = state.withLock { state in
            state.isOpen = false
            defer { state.isReleased = true }
            return !state.isReleased
        }
        for endpoint in state.withLock({ Array($0.readers.keys) }) { cancel(endpoint) }
        if isFirst { bus.release(self) }
        completions.async(execute: completion)
    }

    private func fail() {
        state.withLock { $0.isOpen = false }
        for endpoint in state.withLock({ Array($0.readers.keys) }) {
            finish(endpoint, number: nil, .failure(.noDevice))
        }
    }

    /// Ends the reading of an endpoint, if it still is the one meant.
    private func finish(_ endpoint: UInt8, number: Int?, _ result: Result<[UInt8], USBStatus>) {
        let reader: Reader? = state.withLock { state in
            guard number == nil || state.readers[endpoint]?.number == number else { return nil }
            return state.readers.removeValue(forKey: endpoint)
        }
        if let reader { complete(reader, result) }
    }

    private func complete(_ reader: Reader, _ result: Result<[UInt8], USBStatus>) {
        reader.limit?.lift()
        bus.use.withLock { $0.transfers -= 1 }
        // On another thread than the call's, as with libusb.
        completions.async { [time] in time.run { reader.completion(result) } }
    }

    /// Gives the oldest frame that is due to who reads.
    private func match(_ endpoint: UInt8) {
        // Frame and reader leave together: with two calls at once, another reader would get the frame, or none.
        let (met, wait): ((frame: [UInt8], reader: Reader)?, Duration?) = state.withLock { state in
            guard let first = state.frames[endpoint]?.first, let reader = state.readers[endpoint] else {
                return (nil, nil)
            }
            let now = time.now
            guard first.due <= now else { return (nil, first.due - now) }
            state.frames[endpoint]?.removeFirst()
            state.readers[endpoint] = nil
            return ((first.bytes, reader), nil)
        }
        if let (frame, reader) = met {
            complete(reader, frame.count > reader.count ? .failure(.overflow) : .success(frame))
        }
        guard let wait else { return }
        _ = time.deadline(after: wait) { [weak self] in
            self?.match(endpoint)
        }
    }
}

/// The interfaces in a configuration descriptor (USB 2.0, 9.6.3 to 9.6.6).
package func interfaces(_ configuration: [UInt8]) -> [USBInterface] {
    var found: [USBInterface] = []
    var rest = configuration[...]
    while let length = rest.first.map(Int.init), length >= 2, rest.count >= length {
        let d = Array(rest.prefix(length))
        rest = rest.dropFirst(length)
        switch d[1] {
        case 0x02: break
        case 0x04 where length >= 9:
            found.append(USBInterface(number: d[2], interfaceClass: d[5], endpoints: [], extra: []))
        case 0x05 where length >= 7 && !found.isEmpty:
            found[found.count - 1].endpoints.append(
                .init(address: d[2], attributes: d[3], packetSize: UInt16(d[4]) | UInt16(d[5]) << 8))
        default:
            guard let last = found.indices.last else { break }
            if let endpoint = found[last].endpoints.indices.last {
                found[last].endpoints[endpoint].extra += d
            } else {
                found[last].extra += d
            }
        }
    }
    return found
}

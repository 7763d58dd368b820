import CInput
import Glibc

/// An open input device with a switch in a headphone socket: Linux input subsystem userspace API, chapter 1, EV_SW.
/// Only this file makes ioctls of input devices.
struct HeadphoneJack: ~Copyable {
    /// The state of the device: it has events to read, is at its end for now, or is gone.
    enum Reading: Hashable, Sendable {
        case nothing
        case changed
        case gone
    }

    let file: Int32
    private(set) var isConnected: Bool

    /// Opens an input device.
    ///
    /// - Returns: nil if it has no such switch, may not be opened, or is gone.
    init?(opening path: String) {
        let file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        guard file >= 0 else { return nil }
        guard Self.bit(CINPUT_SWITCHES, of: file) == true, let isConnected = Self.bit(CINPUT_SWITCH_STATES, of: file)
        else {
            close(file)
            return nil
        }
        (self.file, self.isConnected) = (file, isConnected)
    }

    deinit { close(file) }

    /// The switch's bit in the answer to EVIOCGBIT or EVIOCGSW; nil if the driver gives none.
    private static func bit(_ request: UInt, of file: Int32) -> Bool? {
        var bits = [UInt8](repeating: 0, count: Int(CINPUT_SWITCH_BYTES))
        guard ioctl(file, request, &bits) >= 0 else { return nil }
        return bits[Int(SW_HEADPHONE_INSERT) / 8] & 1 << (SW_HEADPHONE_INSERT % 8) != 0
    }

    /// Reads the events that have come.
    mutating func read() -> Reading {
        let before = isConnected
        var events = [input_event](repeating: input_event(), count: 64)
        let size = MemoryLayout<input_event>.stride
        for _ in 0..<Self.reads {
            let count = Glibc.read(file, &events, events.count * size)
            guard count > 0 else {
                guard count < 0, [EAGAIN, EINTR].contains(errno) else { return .gone }
                break
            }
            for event in events.prefix(count / size) { take(event) }
        }
        return isConnected == before ? .nothing : .changed
    }

    private mutating func take(_ event: input_event) {
        switch (Int32(event.type), Int32(event.code)) {
        case (EV_SW, SW_HEADPHONE_INSERT): isConnected = event.value != 0
        // Event codes, SYN_DROPPED: events were lost, and the state has to be asked for.
        case (EV_SYN, SYN_DROPPED): isConnected = Self.bit(CINPUT_SWITCH_STATES, of: file) ?? isConnected
        default: break
        }
    }

    /// A device that has more at once is read on later.
    private static let reads = 16
}

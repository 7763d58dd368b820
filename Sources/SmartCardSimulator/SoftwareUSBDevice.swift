/// A USB device in software, as the host side of the bus sees it: bytes in, bytes out.
///
/// It opens no file and owns no thread.  A host (umockdev, USB/IP, a test) calls it and carries its events to programs
/// that treat it as a real device.
public protocol SoftwareUSBDevice: Sendable {
    /// The device descriptor, 18 bytes (USB 2.0, 9.6.1).
    var deviceDescriptor: [UInt8] { get }
    /// The configuration descriptor with all descriptors that follow it, wTotalLength bytes (USB 2.0, 9.6.3).
    var configurationDescriptor: [UInt8] { get }
    /// The string descriptors.  The first has index 1.
    var strings: [String] { get }

    /// Performs a control transfer that the host's own stack does not answer from the descriptors.
    ///
    /// - Parameter setup: the 8 bytes of the setup packet (USB 2.0, 9.3).
    /// - Parameter data: the data stage of an OUT request.
    /// - Returns: the data stage of an IN request, empty for an OUT request; nil for a STALL.
    func control(setup: [UInt8], data: [UInt8]) -> [UInt8]?

    /// Performs a bulk transfer to the OUT endpoint `endpoint`.
    func transferOut(endpoint: UInt8, _ bytes: [UInt8])

    /// Notes that the host requests data from the IN endpoint `endpoint`.  Faults can strike at a given transfer.
    func willTransferIn(endpoint: UInt8)

    /// Resets the device after a bus reset (USB 2.0, 7.1.7.5).
    func reset()

    /// Sets the observer, which is called on the thread that calls the device.  It replaces an earlier observer.
    func observe(_ observer: @escaping @Sendable (SoftwareUSBEvent) -> Void)
}

extension SoftwareUSBDevice {
    public func reset() {}
}

/// An event of a software USB device.
public enum SoftwareUSBEvent: Hashable, Sendable {
    /// `bytes` are ready to be read from the IN endpoint `endpoint`, once `delay` has passed since this event, and not
    /// before those of earlier events of the endpoint.
    case ready(endpoint: UInt8, bytes: [UInt8], delay: Duration)
    /// The device has left the bus: pending transfers end without data.
    case unplugged
}

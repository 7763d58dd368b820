/// A bus or device that cannot be used.
package struct USBError: Error, Hashable, Sendable {
    package enum Obstacle: Hashable, Sendable {
        /// libusb finds no USB: `/dev/bus/usb` is missing, as in a container without devices.
        case noBus
        /// The program was built without libusb: without the package's trait `USB`.
        case omitted
        /// The device has left the bus.
        case gone
        /// The user may not write the device node.
        case denied
        /// A kernel driver holds the interface and cannot be detached.
        case heldByDriver(String)
        /// Another program holds the interface.
        case heldByProgram
        /// See the status.
        case failed
    }

    package let obstacle: Obstacle
    package let status: USBStatus

    package init(_ obstacle: Obstacle, _ status: USBStatus) { (self.obstacle, self.status) = (obstacle, status) }
}

/// The bus, or a device on it, cannot be used.
package struct USBError: Error, Hashable, Sendable {
    package enum Obstacle: Hashable, Sendable {
        /// libusb finds no USB: there is no `/dev/bus/usb`, or a container was given none.
        case noBus
        /// The device has left the bus.
        case gone
        /// The device node may not be written.
        case denied
        /// A kernel driver holds the interface and does not give way.
        case heldByDriver(String)
        /// Another program holds the interface.
        case heldByProgram
        /// The status alone tells.
        case failed
    }

    package let obstacle: Obstacle
    package let status: USBStatus

    package init(_ obstacle: Obstacle, _ status: USBStatus) { (self.obstacle, self.status) = (obstacle, status) }
}

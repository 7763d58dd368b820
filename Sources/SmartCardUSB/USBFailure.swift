import SmartCard
import USBDevices

extension CardError {
    /// Explains why the bus cannot be used, or a reader on it cannot be opened.
    ///
    /// - Parameter device: the reader; nil for all devices.
    init(_ error: USBError, opening device: USBDevice? = nil) {
        let node = device?.node ?? "/dev/bus/usb"
        switch error.obstacle {
        case .noBus:
            self.init(
                .noService, "libusb finds no USB on this machine", cause: error.status,
                hint: "Check that /dev/bus/usb exists; a container needs it passed in: --device /dev/bus/usb")
        case .omitted:
            self.init(
                .noService, "this program was built without libusb", cause: error.status,
                hint: "Use pcscd, or build it with the trait USB of swift-contactless.")
        case .gone: self.init(.readerGone, cause: error.status)
        case .denied:
            self.init(
                .permissionDenied, "\(node) is not writable", cause: error.status,
                hint: "Install udev/70-contactless-readers.rules, plug the reader in again, and log in again.")
        case .heldByDriver(let driver):
            self.init(
                .readerBusy, "the kernel driver \(driver)", cause: error.status,
                hint: "Unload it: sudo modprobe -r \(driver); udev/contactless-readers-blacklist.conf keeps it away.")
        case .heldByProgram:
            self.init(
                .readerBusy, "another program has \(node) open", cause: error.status,
                hint: "If that is pcscd, stop it: sudo systemctl stop pcscd.socket pcscd.service")
        case .failed: self.init(error.status)
        }
    }

    /// Explains a failed transfer.
    init(_ status: USBStatus) {
        switch status {
        case .noDevice: self.init(.readerGone, cause: status)
        case .timeout: self.init(.readerTimeout, cause: status)
        case .overflow: self.init(.malformedAnswer, "more than the reader said it would send", cause: status)
        case .access: self.init(.permissionDenied, cause: status)
        case .busy: self.init(.readerBusy, cause: status)
        case .interrupted: self.init(.disconnected, cause: status)
        case .notSupported: self.init(.unsupported, cause: status)
        default: self.init(.notTransacted, cause: status)
        }
    }
}

extension USBBus {
    /// Opens a reader, with errors that name the remedy.
    func open(_ device: USBDevice, as function: CCIDFunction) async throws(CardError) -> any USBLink {
        do {
            return try await open(device, interface: function.interface)
        } catch {
            throw CardError(error, opening: device)
        }
    }
}

import SmartCardSimulator

extension SoftwareUSBDevice {
    /// Carries out a control transfer as the bus sees it: the standard requests of USB 2.0, 9.4 from the descriptors, all
    /// others by the device.
    ///
    /// - Returns: the data stage of an IN request, cut to wLength; nil for a STALL.
    func controlTransfer(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        guard setup.count == 8 else { return nil }
        let length = Int(setup[6]) | Int(setup[7]) << 8
        let answer =
            setup[0] & 0x60 == 0 ? standardRequest(setup: setup, data: data) : control(setup: setup, data: data)
        return answer.map { Array($0.prefix(length)) }
    }

    private func standardRequest(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        switch (setup[0], setup[1]) {
        case (0x80...0x82, 0x00): [0x00, 0x00]  // GET_STATUS: bus powered, not halted
        case (0x80, 0x06): descriptor(type: setup[3], index: Int(setup[2]))  // GET_DESCRIPTOR
        case (0x80, 0x08): configurationDescriptor.dropFirst(5).prefix(1).map { $0 }  // GET_CONFIGURATION
        case (0x81, 0x0A): [0x00]  // GET_INTERFACE: no alternate settings
        case (0x00, 0x09), (0x02, 0x01): []  // SET_CONFIGURATION, CLEAR_FEATURE(ENDPOINT_HALT)
        default: control(setup: setup, data: data)
        }
    }

    private func descriptor(type: UInt8, index: Int) -> [UInt8]? {
        switch type {
        case 0x01: deviceDescriptor
        case 0x02 where index == 0: configurationDescriptor
        case 0x03 where index == 0: [0x04, 0x03, 0x09, 0x04]  // English (United States) alone
        case 0x03: stringDescriptor(index)
        default: nil
        }
    }

    /// UTF-16LE without a terminator; bLength counts the two bytes of the header (USB 2.0, 9.6.7).
    private func stringDescriptor(_ index: Int) -> [UInt8]? {
        guard strings.indices.contains(index - 1) else { return nil }
        let text = strings[index - 1].utf16.prefix(126).flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        return [UInt8(text.count + 2), 0x03] + text
    }
}

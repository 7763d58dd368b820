import SmartCard
import Synchronization

/// An NFC Forum Type 4 Tag (Type 4 Tag Operation 2.0): the NDEF application with a capability container and an NDEF
/// file.
///
/// It is as strict as the specification lets a tag be: nothing is answered before the application is selected, and no
/// command may be longer than its capability container says.
final class Type4TagCard: VirtualCard {
    /// The configuration of the tag.
    struct Configuration: Sendable {
        /// The NDEF file, NLEN first.
        var file: [UInt8]
        var isWritable = true
        /// MLe and MLc, the most that READ BINARY gives and UPDATE BINARY takes.
        var mostRead = 59
        var mostWritten = 52

        /// The capability container of mapping version 2.0 (5.1 and Appendix B).
        var capabilityContainer: [UInt8] {
            [0x00, 0x0F, 0x20] + word(mostRead) + word(mostWritten) + [0x04, 0x06] + Type4TagCard.ndefFile
                + word(file.count) + [0x00, isWritable ? 0x00 : 0xFF]
        }

        private func word(_ value: Int) -> [UInt8] {
            [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
        }
    }

    private static let name: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
    private static let capabilityFile: [UInt8] = [0xE1, 0x03]
    private static let ndefFile: [UInt8] = [0xE1, 0x04]

    private struct State {
        var configuration: Configuration
        var isApplicationSelected = false
        var file: File?
    }

    private enum File {
        case capabilityContainer, ndef
    }

    let radio: VirtualCardRadio
    private let state: Mutex<State>

    init(radio: VirtualCardRadio, configuration: Configuration) {
        self.radio = radio
        state = Mutex(State(configuration: configuration))
    }

    func reset() {
        state.withLock { state in
            state.isApplicationSelected = false
            state.file = nil
        }
    }

    func exchange(_ command: [UInt8]) -> [UInt8]? {
        guard let command = try? CommandAPDU(command), command.lengthCoding == .short else {
            return ResponseAPDU(status: 0x6700).bytes
        }
        return state.withLock { respond(to: command, &$0) }.bytes
    }

    private func respond(to command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard command.cla == 0x00 else { return ResponseAPDU(status: 0x6E00) }
        return switch command.ins {
        case 0xA4: ResponseAPDU(status: select(command, &state))
        case 0xB0: readBinary(command, state)
        case 0xD6: ResponseAPDU(status: updateBinary(command, &state))
        default: ResponseAPDU(status: 0x6D00)
        }
    }

    /// Performs SELECT by name with P2 00, and by file identifier with P2 0C (5.4.2, 5.4.3, 5.4.5).
    private func select(_ command: CommandAPDU, _ state: inout State) -> StatusWord {
        switch (command.p1, command.p2) {
        case (0x04, 0x00):
            guard command.data == Self.name else { return .fileNotFound }
            state.isApplicationSelected = true
            state.file = nil
            return .success
        case (0x00, 0x0C):
            let files: [[UInt8]: File] = [Self.capabilityFile: .capabilityContainer, Self.ndefFile: .ndef]
            guard state.isApplicationSelected, let file = files[command.data] else { return .fileNotFound }
            state.file = file
            return .success
        default: return 0x6A86
        }
    }

    private func readBinary(_ command: CommandAPDU, _ state: State) -> ResponseAPDU {
        guard let file = state.file else { return ResponseAPDU(status: 0x6986) }
        guard command.data.isEmpty, let ne = command.ne else { return ResponseAPDU(status: 0x6700) }
        let content = file == .ndef ? state.configuration.file : state.configuration.capabilityContainer
        let offset = Int(command.p1) << 8 | Int(command.p2)
        guard command.p1 & 0x80 == 0, offset < content.count else { return ResponseAPDU(status: 0x6B00) }
        guard ne <= state.configuration.mostRead else { return ResponseAPDU(status: 0x6700) }
        let data = content.dropFirst(offset).prefix(ne)
        return ResponseAPDU(data: Array(data), status: data.count < ne ? 0x6282 : .success)
    }

    private func updateBinary(_ command: CommandAPDU, _ state: inout State) -> StatusWord {
        guard let file = state.file else { return 0x6986 }
        guard file == .ndef, state.configuration.isWritable else { return 0x6982 }
        let offset = Int(command.p1) << 8 | Int(command.p2)
        guard !command.data.isEmpty, command.data.count <= state.configuration.mostWritten else { return 0x6700 }
        guard command.p1 & 0x80 == 0, offset + command.data.count <= state.configuration.file.count else {
            return 0x6B00
        }
        state.configuration.file.replaceSubrange(offset..<(offset + command.data.count), with: command.data)
        return .success
    }
}

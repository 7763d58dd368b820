import SmartCard
import SmartCardPN532

/// The PN532 boards that this process has open: a serial port belongs to one program and is opened once.
actor SerialBoards {
    static let ofThisProcess = SerialBoards()

    private var opened: [String: Task<PN532Reader, any Error>] = [:]

    /// Returns the boards at `devices`, opening those that are closed.
    ///
    /// - Returns: the boards that answer, and the error of the first one that does not.
    func readers(at devices: [String]) async -> (readers: [MachineReader], failure: CardError?) {
        var readers: [MachineReader] = []
        var failure: CardError?
        for device in devices {
            let opening = opened[device] ?? Task { try await PN532Reader.open(device) }
            opened[device] = opening
            do {
                readers.append(MachineReader(try await opening.value, at: device))
            } catch {
                opened[device] = nil
                failure = failure ?? error as? CardError ?? CardError(.other, "\(type(of: error))")
            }
        }
        return (readers, failure)
    }

    /// Releases the board at `device`, or all boards.
    func close(_ device: String? = nil) async {
        let closing = device.map { [$0] } ?? Array(opened.keys)
        let boards = closing.compactMap { opened.removeValue(forKey: $0) }
        for board in boards { await (try? board.value)?.close() }
    }
}

extension MachineReader {
    fileprivate init(_ board: PN532Reader, at device: String) {
        let name = board.identity.name
        self.init(
            id: device, name: name, usbID: nil, version: "\(board.firmware.version).\(board.firmware.revision)",
            model: Model.of(name: name, id: nil), reason: .chosen, identity: board.identity, driver: board)
    }
}

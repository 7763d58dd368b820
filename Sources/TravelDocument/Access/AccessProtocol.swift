public import SmartCard

/// A protocol that opens the chip with an access key: a value without I/O.
protocol AccessProtocol: Sendable {
    /// Takes the chip's response to the command of the last step; nil at the start.
    ///
    /// - Returns: the next step.  After ``AccessStep/established(_:)`` and ``AccessStep/refused(_:)`` there is none.
    mutating func next(_ response: ResponseAPDU?) -> AccessStep

    /// Begins another try with the same key, after a refusal that may be due to chance.
    ///
    /// - Returns: the first step; nil if the refusal stands.
    mutating func startAgain() -> AccessStep?
}

extension AccessProtocol {
    mutating func startAgain() -> AccessStep? { nil }
}

/// A step of an access protocol.
enum AccessStep: Sendable {
    case send(CommandAPDU)
    /// The chip and this reader have proved the key to each other.
    case established(SecureMessaging)
    case refused(AccessRefusal)
}

/// The reason why a chip was not opened.
public enum AccessRefusal: Hashable, Sendable {
    /// The chip does not accept the key.
    ///
    /// - Parameter triesLeft: nil if the chip does not count, as with a machine readable zone.
    case wrongKey(triesLeft: Int?)
    /// The chip does not know the key that the reader proved to it: it is not the chip of this document.
    case chipNotAuthenticated
    /// The chip refused a command of the protocol.
    case status(StatusWord)
    /// A response is not as the standard has it.
    case malformedAnswer
    /// The chip offers a variant that this reader does not have, such as domain parameters of its own.
    case unsupported
    /// Basic Access Control takes the machine readable zone, and no number.
    case needsMachineReadableZone
    /// A command of the protocol is longer than the reader passes on.  It says nothing of the chip.
    case readerLimit
}

extension AccessRefusal: CustomStringConvertible {
    public var description: String {
        switch self {
        case .wrongKey(nil): "the chip does not accept the key. Check what was typed or scanned."
        case .wrongKey(let tries?): "the chip does not accept the key; tries left: \(tries)"
        case .chipNotAuthenticated: "the chip does not know the key of this document"
        case .status(let status): "the chip refused access control: \(status)"
        case .malformedAnswer: "the chip's answer breaks the rules of access control"
        case .needsMachineReadableZone: "the chip opens with the machine readable zone only"
        case .readerLimit: "the chip asks for commands that are longer than this reader passes on"
        case .unsupported: "the chip asks for a variant of access control that this reader does not have"
        }
    }
}

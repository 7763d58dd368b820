/// A failure of a reader, a card or the link to them.  All transports use the same few kinds.
public struct CardError: Error, Sendable {
    /// The kind of failure, as far as programs need to tell failures apart.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// No service manages the readers: pcscd is not installed, not running, or stopped.
        case noService
        /// The service and this library use different protocol versions.
        case versionMismatch
        /// The service or the device refuses this user.
        case permissionDenied
        /// No reader is attached.
        case noReader
        /// The reader has been unplugged, or was never attached.
        case readerGone
        /// Another program or a kernel driver holds the reader.
        case readerBusy
        /// Another program holds the card.
        case sharing
        /// No card in the slot.
        case cardAbsent
        /// The card left during the exchange or earlier.
        case cardRemoved
        /// Another program reset the card.  The selection is lost.
        case cardReset
        /// A card is present and does not answer its reset.
        case cardMute
        /// The card did not answer a command.
        case noAnswer
        /// The link failed during an exchange: the card left the field, or the driver reported an error.
        case notTransacted
        /// The reader did not answer in time.
        case readerTimeout
        /// A malformed answer: too short, too long, or to another command.
        case malformedAnswer
        /// The reader or its driver cannot do this.
        case unsupported
        /// The command is longer than the reader or the driver accepts.
        case tooLong
        /// The card supports none of the requested protocols.
        case protocolMismatch
        /// The connection is closed.
        case disconnected
        /// None of the above; see the cause.
        case other
    }

    /// The action that may help.
    public enum Recovery: Hashable, Sendable {
        /// The same call may succeed now.
        case retry
        /// Connect again and start over: the card has lost its state.
        case reconnect
        /// A person must present a card, or present this one again.
        case presentCard
        /// A person must change the setup: plug in, install, permit, start.
        case repairSetup
        /// Repeating the call will not help.
        case none
    }

    public let kind: Kind
    /// The operation or observation, if it says more than the kind.
    public let detail: String?
    /// The underlying error, such as a PC/SC status.
    public let cause: (any Error)?
    private let ownHint: String?

    public init(_ kind: Kind, _ detail: String? = nil, cause: (any Error)? = nil, hint: String? = nil) {
        self.kind = kind
        self.detail = detail
        self.cause = cause
        ownHint = hint
    }

    /// One sentence for a person: the next step.
    public var hint: String { ownHint ?? Self.advice(kind).hint }
    public var recovery: Recovery { Self.advice(kind).recovery }
}

extension CardError: CustomStringConvertible {
    /// One line that describes the failure: `the card was removed (SCARD_W_REMOVED_CARD 0x80100069)`.
    public var description: String {
        let advice = Self.advice(kind)
        return (detail.map { kind == .other ? $0 : "\(advice.summary): \($0)" } ?? advice.summary)
            + (cause.map { " (\($0))" } ?? "")
    }
}

extension CardError {
    private static func advice(_ kind: Kind) -> (summary: String, recovery: Recovery, hint: String) {
        switch kind {
        case .noService:
            (
                "the smart card service does not answer", .repairSetup,
                "Install it, sudo apt-get install pcscd, and start it: sudo systemctl start pcscd.socket (without systemd: sudo pcscd)."
            )
        case .versionMismatch:
            (
                "the smart card service speaks another protocol version", .repairSetup,
                "Use the libpcsclite that belongs to the running pcscd; containers need the same version as the host."
            )
        case .permissionDenied:
            (
                "access to the reader is denied", .repairSetup,
                "Install the udev and polkit rules from the udev folder, then log in again; over SSH and in services polkit needs its own rule."
            )
        case .noReader:
            ("no reader is attached", .repairSetup, "Plug in a reader and check that lsusb shows it.")
        case .readerGone:
            ("the reader is gone", .repairSetup, "Plug the reader in again.")
        case .readerBusy:
            (
                "the reader is held by another program or driver", .repairSetup,
                "Close the other program; if the pn533_usb module holds the reader, install the modprobe file from the udev folder."
            )
        case .sharing:
            ("another program holds the card", .retry, "Wait until the other program is done, or close it.")
        case .cardAbsent:
            ("no card is on the reader", .presentCard, "Put a card on the reader.")
        case .cardRemoved:
            ("the card was removed", .presentCard, "Put the card on the reader and leave it there.")
        case .cardReset:
            ("the card was reset by another program", .reconnect, "Start over; close the other program if it recurs.")
        case .cardMute:
            (
                "the card does not answer", .presentCard,
                "Turn the card around or take it off and present it again; hold only one card to the reader."
            )
        case .noAnswer:
            ("the card gave no answer to the command", .reconnect, "Present the card again and hold it still.")
        case .notTransacted:
            ("the exchange with the card failed", .reconnect, "Present the card again and hold it still.")
        case .readerTimeout:
            ("the reader does not answer", .repairSetup, "Unplug the reader and plug it in again.")
        case .malformedAnswer:
            ("the answer makes no sense", .reconnect, "Present the card again; unplug the reader if it recurs.")
        case .unsupported:
            ("the reader does not support this", .none, "Use another reader or command.")
        case .tooLong:
            ("more data than the reader takes at once", .none, "Use short APDUs, or command chaining.")
        case .protocolMismatch:
            (
                "the card speaks none of the protocols asked for", .presentCard,
                "Present the card again; a program that asks for one protocol should allow both T=0 and T=1."
            )
        case .disconnected:
            ("the connection was closed", .reconnect, "Connect to the card again.")
        case .other:
            ("the reader failed", .none, "Unplug the reader and plug it in again; then ask pcscd's log.")
        }
    }
}

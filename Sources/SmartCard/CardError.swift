/// A reader, a card or the link to them failed.  The same few kinds over every transport.
public struct CardError: Error, Sendable {
    /// What went wrong, as far as a program has to tell the cases apart.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// No service that owns the readers: pcscd is not installed, not running, or stopped.
        case noService
        /// The service and this library do not speak the same protocol version.
        case versionMismatch
        /// The service or the device refuses this user.
        case permissionDenied
        /// No reader is attached.
        case noReader
        /// The reader has been unplugged, or never was there.
        case readerGone
        /// Another program or a kernel driver holds the reader.
        case readerBusy
        /// Another program holds the card.
        case sharing
        /// No card in the slot.
        case cardAbsent
        /// The card left during the exchange, or since.
        case cardRemoved
        /// Another program reset the card; what was selected is forgotten.
        case cardReset
        /// A card is there and does not answer its reset.
        case cardMute
        /// The card did not answer a command.
        case noAnswer
        /// The link failed during an exchange: the card left the field, or the driver met an error.
        case notTransacted
        /// The reader did not answer in time.
        case readerTimeout
        /// An answer that is none: too short, too long, or to another command.
        case malformedAnswer
        /// The reader or its driver cannot do this.
        case unsupported
        /// Longer than the reader or the driver takes.
        case tooLong
        /// The card speaks none of the protocols asked for.
        case protocolMismatch
        /// The connection was closed before.
        case disconnected
        /// None of the above; the cause tells.
        case other
    }

    /// What a program can do about it.
    public enum Recovery: Hashable, Sendable {
        /// The same call may succeed now.
        case retry
        /// Connect again and start over: the card has forgotten everything.
        case reconnect
        /// A person has to present a card, or this one again.
        case presentCard
        /// A person has to change the machine: plug in, install, permit, start.
        case repairSetup
        /// Asking for the same again will not help.
        case none
    }

    public let kind: Kind
    /// What was being done or seen, when that tells more than the kind.
    public let detail: String?
    /// The error underneath, such as a PC/SC status.
    public let cause: (any Error)?
    private let ownHint: String?

    public init(_ kind: Kind, _ detail: String? = nil, cause: (any Error)? = nil, hint: String? = nil) {
        self.kind = kind
        self.detail = detail
        self.cause = cause
        ownHint = hint
    }

    /// One sentence for a person: what to do next.
    public var hint: String { ownHint ?? Self.advice(kind).hint }
    public var recovery: Recovery { Self.advice(kind).recovery }
}

extension CardError: CustomStringConvertible {
    /// One line that says what is wrong: `the card was removed (SCARD_W_REMOVED_CARD 0x80100069)`.
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

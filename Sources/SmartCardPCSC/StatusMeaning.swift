package import SmartCard

/// The PC/SC function that returned a status, since the meaning of a status depends on it.
package enum PCSCOperation: Hashable, Sendable {
    case establish, list, wait, connect, transmit, transaction, reconnect, control, attribute, status, disconnect
}

extension CardError {
    /// Explains `status` as the result of `operation`.
    package init(_ status: PCSCStatus, during operation: PCSCOperation, detail: String? = nil) {
        let meaning = Meaning.exceptions[operation]?[status] ?? Meaning.usual[status] ?? Meaning(.other)
        self.init(meaning.kind, detail ?? meaning.detail, cause: status, hint: meaning.hint)
    }
}

private struct Meaning: Sendable {
    let kind: CardError.Kind
    let detail: String?
    let hint: String?

    init(_ kind: CardError.Kind, _ detail: String? = nil, hint: String? = nil) {
        self.kind = kind
        self.detail = detail
        self.hint = hint
    }

    static let usual: [PCSCStatus: Meaning] = [
        .noService: Meaning(.noService),
        .serviceStopped: Meaning(.noService),
        .shutdown: Meaning(.noService),
        // The socket was closed or reset.  A service that refuses a client does just that: see below.
        .commError: Meaning(.noService, "pcscd closed the connection"),
        .securityViolation: Meaning(.noService, "pcscd reset the connection"),
        .serverTooBusy: Meaning(.noService, "pcscd is too busy"),
        .noReadersAvailable: Meaning(.noReader),
        .unknownReader: Meaning(.readerGone),
        .readerUnavailable: Meaning(.readerGone),
        .sharingViolation: Meaning(.sharing),
        .noSmartcard: Meaning(.cardRemoved),
        .removedCard: Meaning(.cardRemoved),
        .resetCard: Meaning(.cardReset),
        .unpoweredCard: Meaning(.cardReset, "the card was powered off"),
        .unresponsiveCard: Meaning(.cardMute),
        .unsupportedCard: Meaning(.protocolMismatch),
        .cardUnsupported: Meaning(.protocolMismatch),
        .protoMismatch: Meaning(.protocolMismatch),
        .notTransacted: Meaning(.notTransacted),
        .commDataLost: Meaning(.notTransacted),
        .timeout: Meaning(.readerTimeout),
        .notReady: Meaning(.readerTimeout),
        .waitedTooLong: Meaning(.readerTimeout),
        .unsupportedFeature: Meaning(.unsupported),
        .readerUnsupported: Meaning(.unsupported),
        .invalidHandle: Meaning(.disconnected),
    ]

    private static let denied = Meaning(
        .permissionDenied, "pcscd hung up, as it does when polkit denies access",
        hint:
            "Log in at the machine itself, or install the polkit rule from the udev folder and join its group: over SSH, in services and in containers polkit denies access to pcscd."
    )
    /// The reader of a handle is looked up first, so this status concerns the reader and not the other arguments.
    private static let unplugged: [PCSCStatus: Meaning] = [.invalidValue: Meaning(.readerGone)]
    private static let escape = Meaning(
        .unsupported, "the driver did not take the control code",
        hint:
            "If it is an escape command: set bit 0 of ifdDriverOptions (DRIVER_OPTION_CCID_EXCHANGE_AUTHORIZED) in /etc/libccid_Info.plist and restart pcscd."
    )

    static let exceptions: [PCSCOperation: [PCSCStatus: Meaning]] = [
        .establish: [
            .commError: denied,
            .securityViolation: denied,
            .serviceStopped: Meaning(.versionMismatch),
            .noMemory: Meaning(.noService, "pcscd has no room for another client"),
        ],
        .connect: [
            .commError: denied,
            .securityViolation: denied,
            .noSmartcard: Meaning(.cardAbsent),
            .removedCard: Meaning(.cardAbsent),
            .unpoweredCard: Meaning(.cardMute, "the card did not power up"),
        ],
        .reconnect: unplugged.merging([.unpoweredCard: Meaning(.cardMute, "the card did not power up")]) { _, new in new
        },
        .transmit: unplugged.merging(
            [.insufficientBuffer: Meaning(.malformedAnswer, "the answer is longer than any APDU")]) { _, new in new },
        .transaction: unplugged,
        .status: unplugged,
        .disconnect: unplugged,
        .control: unplugged.merging([
            .notTransacted: escape,
            .unsupportedFeature: escape,
            .insufficientBuffer: Meaning(.malformedAnswer, "the answer is longer than any APDU"),
        ]) { _, new in new },
        .attribute: unplugged.merging([
            .notTransacted: Meaning(.unsupported, "the driver does not tell the attribute"),
            // The buffer had the maximum size; vsmartcard's driver claims less for an unknown value.
            .insufficientBuffer: Meaning(.unsupported, "the driver does not tell the attribute"),
        ]) { _, new in new },
    ]
}

/// The answers in words: for logs and screens, without what passes contain.
extension PassReading.Status: CustomStringConvertible {
    public var description: String {
        switch self {
        case .success: "read"
        case .notFound: "no such pass"
        case .notActivated: "locked, or the pass waits for its holder: see phone"
        case .wrongParameters: "the phone does not accept the parameters of the command"
        case .wrongLength: "the phone does not accept the length of the command"
        case .userInterventionRequired: "the phone asks its holder for something: see phone"
        case .incorrectData: "the phone does not accept the data of the command"
        case .unsupportedVersion: "the phone has another version of the protocol"
        case .readFailure(let failure): "\(failure)"
        }
    }
}

extension PassReading.Failure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .status(let word): "the phone refuses: \(word)"
        case .malformed: "the phone breaks the protocol"
        case .noPass: "the phone reports success, without a pass"
        case .notDecrypted(let fault): "\(fault)"
        case .replayed: "the pass was read before: it may have been recorded"
        case .clockDiffers(let seconds):
            "the phone's clock is \(abs(seconds)) seconds \(seconds < 0 ? "behind" : "ahead of") this machine's"
        case .refused(let status): "\(status)"
        case .rejected(let status): status.map { "\($0)" } ?? "the wallet refuses for an unknown reason"
        case .smartTap(let fault): "\(fault)"
        }
    }
}

extension SmartTapStatus: CustomStringConvertible {
    public var description: String {
        switch self {
        case .success: "success"
        case .noPass: "no such pass"
        case .preSignedAuthentication: "success with a signature made before"
        case .moreData: "more of the answer waits"
        case .transient(let word): "the wallet asks to try again: \(word)"
        case .deviceLocked: "the phone is locked"
        case .choosesPass: "the holder chooses a pass"
        case .userAction(let word): "the wallet asks its holder for something: \(word)"
        case .unknownCommand: "the wallet does not know the command"
        case .notParsed: "the wallet cannot parse the command"
        case .invalidCrypto: "the wallet does not accept the cryptography of the command"
        case .moreNotApplicable: "the wallet has no more data for such a request"
        case .moreNotAvailable: "the wallet has no more data"
        case .tooManyRequests: "the wallet has had too many requests"
        case .noMerchant: "the wallet does not know the collector"
        case .invalidPush: "the wallet does not accept the data sent to it"
        case .terminalError(let word): "the wallet sees an error of the terminal: \(word)"
        case .authenticationFailed: "the wallet does not accept the signature: is the key registered in this version?"
        case .unsupportedVersion: "the wallet has another version of Smart Tap"
        case .permanent(let word): "the wallet refuses for good: \(word)"
        case .other(let word): "the wallet refuses: \(word)"
        }
    }
}

extension SmartTapSessionStatus: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknown: "the wallet states no reason"
        case .ok: "success"
        case .invalidFormat: "the wallet cannot parse the request"
        case .unsupportedVersion: "the wallet has another version of Smart Tap"
        case .invalidSequenceNumber: "the wallet expects another sequence number"
        case .unknownMerchant: "the wallet does not know the collector"
        case .merchantMissing: "the wallet misses the merchant in the request"
        case .serviceMissing: "the wallet misses the kinds of passes in the request"
        case .resend: "the wallet wants the request again"
        case .notYetAvailable: "the passes are not available yet"
        }
    }
}

import Foundation
import Logging

/// The requests `speech.say`, which says one of the page's texts, and `speech.stop`, and the event `host.headphones`.
///
/// It is for customers who do not see the screen, and cannot bring a screen reader of their own (EN 301 549, 5.1.3).  The
/// page names a text of its table and values for it; what may be said aloud are amounts and counts, never what tells who
/// somebody is (5.1.3.8, 5.1.3.9).  A text is said to headphones alone unless the kiosk is set up otherwise.
///
/// The page names the volume too, in percent; without one it stays as it was (5.1.3.11).  `speech.stop` ends a text at once.
///
/// The page is answered when the text has been said.  A new text takes the place of the one before, which is answered
/// `CANCELLED`, as are texts when the headphone is pulled out, the page goes away, or the kiosk goes to the background.
@MainActor public final class SpeechCapability: BridgeRequestHandler {
    /// The listeners.
    public enum Audience: Hashable, Sendable {
        /// Whoever has connected a headphone.
        case headphones
        /// Everybody: the kiosk has a handset, or a loudspeaker in a room of its own.  Pages are told that a headphone is
        /// connected, so that they speak.
        case everybody
    }

    private let texts: SpeechTexts
    private let output: any SpeechOutput
    private let headphones: KioskHeadphones
    private let audience: Audience
    private weak var host: BridgeHost?
    private var isConnected: Bool
    private var speaking: Task<Void, any Error>?
    private var watch: Task<Void, Never>?

    /// - Parameters:
    ///   - texts: the page's.
    ///   - output: what says them.
    ///   - headphones: the socket that is watched.
    ///   - audience: who may hear the texts.
    public init(
        _ texts: SpeechTexts, output: any SpeechOutput = SpeechDispatcher(),
        headphones: KioskHeadphones = .automatic, audience: Audience = .headphones
    ) {
        (self.texts, self.output, self.headphones, self.audience) = (texts, output, headphones, audience)
        isConnected = audience == .everybody
    }

    deinit {
        watch?.cancel()
        speaking?.cancel()
    }

    public let actions = ["speech.say", "speech.stop"]

    public var capabilities: [String: CapabilityState] {
        let isThere = output.isThere
        return [
            "speech.say": CapabilityState(
                isSupported: isThere, permissionState: isThere ? .granted : .unavailable,
                reason: isThere ? nil : "no speech server is running")
        ]
    }

    public func attach(to host: BridgeHost) {
        self.host = host
        host.onBackground { [weak self] in self?.stop() }
        guard audience == .headphones else { return }
        let states = headphones.states()
        watch = Task { [weak self] in
            for await isConnected in states { self?.take(isConnected) }
            self?.take(false)
        }
    }

    public func pageConnected() {
        host?.send(event: "host.headphones", data: ["connected": .bool(isConnected)])
    }

    public func pageLeft() { stop() }

    private func take(_ isConnected: Bool) {
        guard isConnected != self.isConnected else { return }
        self.isConnected = isConnected
        if !isConnected { stop() }
        pageConnected()
        // The speech server may have come in the meantime.
        host?.capabilitiesChanged()
    }

    private func stop() { speaking?.cancel() }

    public func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async {
        guard request.payload.action == "speech.say" else {
            stop()
            return responder.respond(status: .success, data: [:])
        }
        let data = request.payload.data ?? [:]
        let (text, language, volume): (String, String, Int?)
        do throws(BridgeErrorPayload) {
            (text, language) = try spoken(data)
            volume = try data["volume"].map { value throws(BridgeErrorPayload) in
                guard let percent = value.wholeNumber, 0...100 ~= percent else {
                    throw .init(.invalidRequest, "volume: 0 to 100 is due")
                }
                return Int(percent)
            }
        } catch {
            return responder.fail(error)
        }
        stop()
        guard isConnected else { return responder.fail(.init(.permissionDenied, "no headphone is connected")) }
        guard host?.isInBackground != true else { return responder.fail(.init(.cancelled, "nobody is there")) }
        let task = Task { [output] in try await output.say(text, in: language, volume: volume) }
        speaking = task
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        switch result {
        case .success: responder.respond(status: .success, data: [:])
        case .failure(let error): responder.fail(BridgeErrorPayload(speech: error))
        }
    }

    /// The text that a request names, and its language: that of the request if the table has it, else the kiosk's.
    private func spoken(_ data: [String: JSONValue]) throws(BridgeErrorPayload) -> (String, String) {
        guard let key = data["key"]?.text, 1...100 ~= key.utf8.count else {
            throw .init(.invalidRequest, "key: 1 to 100 characters are due")
        }
        var values: [String: String] = [:]
        if let given = data["values"] {
            guard let members = given.members, members.count <= 16 else {
                throw .init(.invalidRequest, "values: an object of at most 16 members is due")
            }
            for (name, value) in members {
                guard let text = value.text else { throw .init(.invalidRequest, "values: texts are due") }
                values[name] = text
            }
        }
        let asked = values.removeValue(forKey: "locale").flatMap { Locale(bcp47: $0) }
        let languages = [asked, host?.locale].compactMap { $0?.language.languageCode?.identifier }
        let language = languages.first(where: texts.languages.contains) ?? texts.languages[0]
        return (try texts.text(key, language, values), language)
    }
}

extension BridgeErrorPayload {
    /// The answer to a request whose text was not said to its end.
    fileprivate init(speech error: any Error) {
        switch error {
        case is CancellationError: self.init(.cancelled, "the text was canceled, or another one took its place")
        case SpeechError.noServer: self.init(.unsupported, "no speech server is running")
        case SpeechError.noAnswer: self.init(.timeout, "the speech server did not say the text in time")
        default:
            logger.warning("a text was not said: \((error as? SpeechError)?.description ?? loggable(error))")
            self.init(code: "SPEECH_FAILED", message: "the speech server did not say the text", recoverable: true)
        }
    }
}

import Logging
import SmartCard

let logger = Logger(label: "KioskBridge")

/// Returns a text for the log, or for another error: a foreign error's text is not safe to log, so it is named by its
/// type.
func loggable(_ error: any Error) -> String {
    switch error {
    case let error as CardError: error.description
    case let error as BridgeErrorPayload: error.code
    default: "\(type(of: error))"
    }
}

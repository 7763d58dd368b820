import SmartCard

/// The issuer's data for the card (EMV Contactless Book C-3, 6.2): its authentication data, then its scripts.
struct IssuerUpdate: Sendable {
    private var authenticationData: [UInt8]?
    private var scripts: ArraySlice<IssuerScript>
    private var isAuthenticating = false
    private var doneResults: [UInt8] = []
    /// Tag 9F5B: five bytes for each script, including those that were not performed (EMV Book 4, Annex A5).
    var scriptResults: [UInt8] { doneResults + scripts.flatMap(\.result) }
    private(set) var isInterrupted = false

    init(_ response: OnlineResponse) {
        authenticationData = response.issuerAuthenticationData
        scripts = response.scripts.map { IssuerScript($0) }[...]
    }

    /// Returns the next command.
    ///
    /// - Returns: nil when there is none.
    mutating func next() -> CommandAPDU? {
        if let data = authenticationData {
            authenticationData = nil
            isAuthenticating = true
            return .externalAuthenticate(data)
        }
        while !scripts.isEmpty {
            if let command = scripts[scripts.startIndex].next() { return command }
            doneResults += scripts.removeFirst().result
        }
        return nil
    }

    /// Records the status of the response to the command.
    mutating func take(_ status: StatusWord) {
        // Book C-3, 6.2.1.1: the scripts follow, whatever the card answered.
        if isAuthenticating {
            isAuthenticating = false
        } else if !scripts.isEmpty {
            scripts[scripts.startIndex].take(status)
        }
    }

    /// Records that there was no response.  It is unknown whether the card has executed the command, so it counts as
    /// failed, and nothing follows it.
    mutating func interrupt() {
        isInterrupted = true
        if !isAuthenticating, !scripts.isEmpty { scripts[scripts.startIndex].interrupt() }
    }
}

import SmartCard

/// What the issuer sends to the card (EMV Contactless Book C-3, 6.2): its authentication data, then its scripts.
struct IssuerUpdate: Sendable {
    private var authenticationData: [UInt8]?
    private var scripts: ArraySlice<IssuerScript>
    private var isAuthenticating = false
    /// Tag 9F5B: five bytes for each script (EMV Book 4, Annex A5).
    private(set) var scriptResults: [UInt8] = []

    init(_ response: OnlineResponse) {
        authenticationData = response.issuerAuthenticationData
        scripts = response.scripts.map { IssuerScript($0) }[...]
    }

    /// - Returns: the next command; nil when there is none.
    mutating func next() -> CommandAPDU? {
        if let data = authenticationData {
            authenticationData = nil
            isAuthenticating = true
            return .externalAuthenticate(data)
        }
        while !scripts.isEmpty {
            if let command = scripts[scripts.startIndex].next() { return command }
            scriptResults += scripts.removeFirst().result
        }
        return nil
    }

    /// Takes the status of the response to the command.
    mutating func take(_ status: StatusWord) {
        // Book C-3, 6.2.1.1: whatever the card makes of it, the scripts follow.
        if isAuthenticating {
            isAuthenticating = false
        } else if !scripts.isEmpty {
            scripts[scripts.startIndex].take(status)
        }
    }
}

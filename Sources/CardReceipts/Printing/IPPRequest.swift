extension CUPSClient {
    /// A response of the printer.
    struct Answer: Sendable {
        let status: IPPStatus
        /// Text and names as strings; numbers and enumerations as `Int`s.
        let strings: [String: [String]]
        let integers: [String: [Int]]
    }

    /// An attribute of a request.
    struct Attribute: Sendable {
        enum Group: Sendable { case operation, job }
        enum Value: Sendable {
            case keywords([String])
            case name(String)
            case mimeType(String)
            case integer(Int)
        }

        let group: Group
        let name: String
        let value: Value

        init(_ name: String, _ value: Value, in group: Group = .operation) {
            (self.group, self.name, self.value) = (group, name, value)
        }
    }

    enum Operation: Sendable {
        case printJob, getJobAttributes, cancelJob, getPrinterAttributes
    }
}

/// An IPP status code (RFC 8011, appendix B).
///
/// Open: a value without a name is kept, and printed as a number.
struct IPPStatus: RawRepresentable, Hashable, Sendable {
    var rawValue: Int

    static let forbidden = IPPStatus(rawValue: 0x0401)
    static let notAuthenticated = IPPStatus(rawValue: 0x0402)
    static let notAuthorized = IPPStatus(rawValue: 0x0403)
    static let notFound = IPPStatus(rawValue: 0x0406)
    static let gone = IPPStatus(rawValue: 0x0407)
    static let formatNotSupported = IPPStatus(rawValue: 0x040A)
    static let attributesNotSupported = IPPStatus(rawValue: 0x040B)
    static let temporaryError = IPPStatus(rawValue: 0x0505)
    static let notAcceptingJobs = IPPStatus(rawValue: 0x0506)
    static let busy = IPPStatus(rawValue: 0x0507)

    var isSuccess: Bool { (0..<0x100).contains(rawValue) }
}

extension IPPStatus: CustomStringConvertible {
    /// The standard's name and the value.
    var description: String { "\(name) \(String(rawValue, radix: 16))" }
}

public import Foundation

/// The passes that were read from a phone.  What they contain is personal data.
public struct VASReadResult: Identifiable, Sendable {
    /// The answer for one merchant.
    public struct ReadEntry: Identifiable, Sendable {
        /// The outcome, by the phone's status word.
        public enum Status: Int, Sendable {
            /// 9000.
            case success
            /// 6A83: the phone has no such pass.
            case vasDataNotFound
            /// 6287: the phone is locked, or the pass waits for its holder.
            case vasDataNotActivated
            /// 6B00.
            case wrongP1P2
            /// 6700.
            case wrongCommandLength
            /// 6984: the phone asks its holder for something.
            case userInterventionRequired
            /// 6A80.
            case incorrectData
            /// 6340.
            case unsupportedApplicationVersion
        }

        /// The merchant's pass type identifier.  It does not identify the customer.
        public let id: String
        /// The pass: as its issuer wrote it if the configuration has the merchant's key, otherwise sealed for the payment
        /// service; nil without success.
        public let customerVASData: Data?
        public let status: Status

        package init(id: String, customerVASData: Data?, status: Status) {
            (self.id, self.customerVASData, self.status) = (id, customerVASData, status)
        }
    }

    /// A UUID that identifies this read.
    public let id: String
    /// The requested merchants that the phone was asked for, in order.
    public let entries: [ReadEntry]

    @available(*, deprecated, message: "The reader creates results")
    public init(id: String, entries: [ReadEntry]) {
        self.init(of: id, entries)
    }

    package init(of id: String, _ entries: [ReadEntry]) { (self.id, self.entries) = (id, entries) }
}

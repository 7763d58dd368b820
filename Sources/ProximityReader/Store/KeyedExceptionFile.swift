public import CardEncryption
import Crypto
public import EMVContactless
import Foundation
import SmartCard

extension ProximityReaderSystem {
    /// An exception file that contains no account numbers.
    public struct KeyedExceptionFile: ExceptionFile {
        private let key: SecretKey
        private let references: Set<String>

        /// Creates an exception file.
        ///
        /// - Parameters:
        ///   - references: for each card, the HMAC-SHA-256 of its account number's ASCII digits, in hexadecimal.
        ///   - key: the key that the maker of the list used.
        public init(_ references: some Sequence<String>, key: SecretKey) {
            self.key = key
            self.references = Set(references.map { $0.lowercased() })
        }

        public func contains(_ pan: PAN, sequenceNumber: UInt8?) -> Bool {
            let code = key.withUnsafeBytes {
                HMAC<SHA256>.authenticationCode(for: pan.ascii, using: SymmetricKey(data: $0))
            }
            return references.contains(Data(code).hex.lowercased())
        }
    }
}

import CardEncryption
import Glibc

/// The contents of a pass, as its issuer wrote them: a member number, most of the time.
///
/// They are personal data: they are kept in storage that is wiped when the last copy is released, and print as their length.
public struct PassData: Hashable, Sendable {
    private let storage: WipedStorage

    /// A copy in ordinary memory, made anew each time.
    public var bytes: [UInt8] { storage.withUnsafeBytes { Array($0) } }

    /// Creates the contents as a copy of `bytes`.  The caller must wipe the original.
    public init(_ bytes: [UInt8]) { self.init(copying: bytes) }

    init(copying bytes: some Collection<UInt8>) {
        storage = WipedStorage(count: bytes.count)
        storage.bytes.copyBytes(from: bytes)
    }

    /// The contents as UTF-8 text; nil if they are none.
    public var text: String? { withUnsafeBytes { String(validating: $0, as: UTF8.self) } }

    public var count: Int { storage.bytes.count }

    /// Lends the bytes, which must not be kept.
    package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(storage) { try body(storage.readOnly) }
    }

    public static func == (a: PassData, b: PassData) -> Bool {
        a.withUnsafeBytes { a in b.withUnsafeBytes { a.elementsEqual($0) } }
    }

    public func hash(into hasher: inout Hasher) { withUnsafeBytes { hasher.combine(bytes: $0) } }
}

extension PassData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "pass data: \(count) bytes" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

extension Array<UInt8> {
    /// Overwrites what stands here, unless another copy shares it.
    mutating func wipe() {
        withUnsafeMutableBytes { bytes in
            if let address = bytes.baseAddress { explicit_bzero(address, bytes.count) }
        }
    }
}

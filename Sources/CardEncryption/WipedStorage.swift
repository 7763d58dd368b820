package import FoundationEssentials
import Glibc

/// Separate pages for secrets: kept out of the swap file if the system permits (`mlock`), left out of core dumps
/// (`MADV_DONTDUMP`) and of forked processes (`MADV_DONTFORK`: a child that touches them is terminated), and
/// overwritten before they return to the system.
///
/// A writer has exclusive access to the bytes; once shared, they are only read.
package final class WipedStorage: @unchecked Sendable {
    /// The bytes, valid as long as the storage exists: an owner keeps it in a property, or to the end of a scope with
    /// `withExtendedLifetime`.
    package let bytes: UnsafeMutableRawBufferPointer
    private let mappedLength: Int

    /// Allocates storage.
    ///
    /// - Parameter count: the number of bytes, initially zero.  If the system has no memory, the program ends, as for
    ///   an array.
    package init(count: Int) {
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        mappedLength = max(page, (count + page - 1) / page * page)
        let address = mmap(nil, mappedLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let address, address != UnsafeMutableRawPointer(bitPattern: -1) else {
            fatalError("no memory for \(mappedLength) bytes")
        }
        bytes = UnsafeMutableRawBufferPointer(start: address, count: count)
        // RLIMIT_MEMLOCK or an old kernel may refuse these; the page on CardEncryption says so.
        _ = mlock(address, mappedLength)
        _ = madvise(address, mappedLength, Int32(MADV_DONTDUMP))
        _ = madvise(address, mappedLength, Int32(MADV_DONTFORK))
    }

    convenience init(_ source: UnsafeRawBufferPointer) {
        self.init(count: source.count)
        bytes.copyMemory(from: source)
    }

    /// Moves the bytes of `data` here, and wipes them there.
    package convenience init(moving data: inout Data) {
        self.init(count: data.count)
        data.withUnsafeMutableBytes { source in
            bytes.copyMemory(from: UnsafeRawBufferPointer(source))
            if let address = source.baseAddress { explicit_bzero(address, source.count) }
        }
    }

    deinit {
        guard let address = bytes.baseAddress else { return }
        explicit_bzero(address, mappedLength)
        munmap(address, mappedLength)
    }

    /// Lends the bytes of a storage without another owner.
    package func withUnsafeBytes<Result>(_ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(bytes) }
    }

    package var readOnly: UnsafeRawBufferPointer { UnsafeRawBufferPointer(bytes) }
}

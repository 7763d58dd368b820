import FoundationEssentials
import Glibc

/// Pages of their own for secrets: kept out of the swap file where the system permits (`mlock`), left out of core dumps
/// (`MADV_DONTDUMP`) and of processes that are forked (`MADV_DONTFORK`: a child that touches them ends), overwritten before
/// they go back to the system.
///
/// What writes to the bytes is alone with them; once shared, they are only read.
final class WipedStorage: @unchecked Sendable {
    /// Valid as long as the storage lives: for what owns it, in a property or to the end of a scope that
    /// `withExtendedLifetime` marks.
    let bytes: UnsafeMutableRawBufferPointer
    private let mappedLength: Int

    /// - Parameter count: the number of bytes, all zero to begin with.  Ends the program where the system has no memory, as
    ///   an array does.
    init(count: Int) {
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        mappedLength = max(page, (count + page - 1) / page * page)
        let address = mmap(nil, mappedLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let address, address != UnsafeMutableRawPointer(bitPattern: -1) else {
            fatalError("no memory for \(mappedLength) bytes")
        }
        bytes = UnsafeMutableRawBufferPointer(start: address, count: count)
        // They may be refused, by RLIMIT_MEMLOCK or an old kernel; the page on CardEncryption says so.
        _ = mlock(address, mappedLength)
        _ = madvise(address, mappedLength, Int32(MADV_DONTDUMP))
        _ = madvise(address, mappedLength, Int32(MADV_DONTFORK))
    }

    convenience init(_ source: UnsafeRawBufferPointer) {
        self.init(count: source.count)
        bytes.copyMemory(from: source)
    }

    /// Takes the bytes of `data` over, and wipes them there.
    convenience init(moving data: inout Data) {
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

    /// The bytes, of a storage that nothing else keeps alive.
    func withUnsafeBytes<Result>(_ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(bytes) }
    }

    var readOnly: UnsafeRawBufferPointer { UnsafeRawBufferPointer(bytes) }
}

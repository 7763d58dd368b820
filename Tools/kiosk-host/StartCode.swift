import Foundation
import Glibc

/// The code that only the start of this process runs.
enum StartCode {
    /// The time that a start may take on a slow machine; an earlier release drops pages that come back at once.
    static let pause = Duration.seconds(5)

    /// Unmaps the code of this process and of its libraries, which is never written to: pages that run again come back from
    /// their files, and the system can use the memory of the others (madvise(2), MADV_DONTNEED).
    static func release() {
        let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
        for line in maps.split(separator: "\n") {
            // Range, permissions, offset, device, inode, and the path of a file (proc(5)).
            let fields = line.split(separator: " ")
            let bounds = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard fields.count >= 6, fields[1] == "r-xp", fields[5].hasPrefix("/"), bounds.count == 2 else { continue }
            madvise(UnsafeMutableRawPointer(bitPattern: bounds[0]), Int(bounds[1] - bounds[0]), MADV_DONTNEED)
        }
    }
}

import CTestProcess
import Glibc

/// Says whether the other threads of this process have anything left to do.
///
/// A thread that is woken, be it by a job for the pool, a block for a queue or a lock that opens, is ready to run from
/// the moment of the system call that wakes it.  So if all are asleep at one instant, nobody in this process goes on without
/// something from outside.
///
/// To look at all threads takes longer than an instant.  But the kernel counts how often each has been run.  If one
/// look after the other finds all of them asleep, and none has been run between the two, all have slept from the end of
/// the first to the beginning of the second.
final class ThreadWatch {
    private let folder: OpaquePointer
    /// The thread that looks.
    private let own: Int
    /// The others at the last look.
    private var threads: [Thread] = []
    /// Whether all of them were asleep then.
    private var sleptAll = false

    /// To be used by the thread that makes it.
    init() {
        guard let folder = opendir("/proc/self/task") else { fatalError("/proc/self/task cannot be read") }
        self.folder = folder
        var link = [UInt8](repeating: 0, count: 64)
        let count = readlink("/proc/thread-self", &link, link.count)
        own =
            link.prefix(max(count, 0)).split(separator: UInt8(ascii: "/")).last.flatMap {
                Int(String(decoding: $0, as: UTF8.self))
            } ?? 0
        // A kernel without these counts would let time go on too early.
        guard Thread(own)?.runs ?? 0 > 0 else {
            fatalError("simulated time needs schedstat, syscall and stat of each thread in /proc, which are not there")
        }
    }

    deinit { closedir(folder) }

    /// Whether all threads but the caller's have slept at one instant that is not before the call.
    func allSleep() -> Bool {
        // What was seen before the call counts, if nobody has been run since.
        look() || sleptAll && look()
    }

    /// - Returns: true if all sleep, and none has been run since the last look.
    private func look() -> Bool {
        var isUnchanged = sleptAll
        sleptAll = false
        var index = 0
        rewinddir(folder)
        while let entry = readdir(folder) {
            guard let id = Line.number(of: &entry.pointee.d_name), id != own else { continue }
            if index == threads.count || threads[index].id != id {
                isUnchanged = false
                let known = threads[index...].firstIndex { $0.id == id }
                guard let thread = known.map({ threads.remove(at: $0) }) ?? Thread(id) else { return false }
                threads.insert(thread, at: index)
            }
            guard let count = threads[index].lookedAsleep() else {
                threads.remove(at: index)
                return false
            }
            if threads[index].count != count { (threads[index].count, isUnchanged) = (count, false) }
            index += 1
        }
        if index < threads.count {
            threads.removeSubrange(index...)
            isUnchanged = false
        }
        sleptAll = true
        return isUnchanged
    }

    /// What the kernel says of one thread.
    private final class Thread {
        let id: Int
        /// How often it had been run at the last look.
        var count = -1
        private let (schedstat, syscall, stat): (Int32, Int32, Int32)
        private let line = Line()

        init?(_ id: Int) {
            func file(_ name: String) -> Int32 { open("/proc/self/task/\(id)/\(name)", O_RDONLY | O_CLOEXEC) }
            self.id = id
            (schedstat, syscall, stat) = (file("schedstat"), file("syscall"), file("stat"))
            guard min(schedstat, syscall, stat) >= 0 else {
                // The thread has ended.
                guard errno != EMFILE && errno != ENFILE else { fatalError("simulated time needs more open files") }
                return nil
            }
        }

        /// How often it has been run: the third number of schedstat.
        var runs: Int? {
            line.read(schedstat)
            line.skipWord()
            line.skipWord()
            return line.number
        }

        deinit { for file in [schedstat, syscall, stat] where file >= 0 { close(file) } }

        /// Returns how often it has been run; nil if it is awake.  A thread that is seen asleep after its count, and has the same
        /// count at the next look, sleeps from here to there.
        func lookedAsleep() -> Int? {
            // The third number.
            guard let count = runs else { return nil }
            // "running" until it has left the processor, while its state is set a moment before; -1 where a page of memory is
            // waited for.  A thread in nanosleep goes on by itself, but the thread sanitizer has one for ever.
            line.read(syscall)
            let call = line.number ?? -1
            guard call != Int(test_nanosleep) && call != Int(test_clock_nanosleep) || Sanitizer.current == .thread
            else {
                return nil
            }
            // The state behind the name: D waits for a disk, Z is a process's first thread that has ended.
            line.read(stat)
            line.skip(through: UInt8(ascii: ")"))
            line.skipWord()
            switch line.first {
            // Between count and state it may have run, and woken one that was looked at before.
            case UInt8(ascii: "S"): return call >= 0 && runs == count ? count : nil
            case UInt8(ascii: "Z"), UInt8(ascii: "X"): return count
            default: return nil
            }
        }
    }

    /// A line of a file.  Bytes, as code that is not optimized reads some ten thousand of them in a second.
    private final class Line {
        private let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 128)
        private var (start, end) = (0, 0)

        deinit { bytes.deallocate() }

        func read(_ file: Int32) { (start, end) = (0, max(pread(file, bytes, 128, 0), 0)) }

        var first: UInt8? { start < end ? bytes[start] : nil }

        /// The number that it begins with; nil if that is none, or negative.
        var number: Int? { Self.number(bytes + start, bytes + end) }

        func skip(through byte: UInt8) {
            var index = end
            while index > start, bytes[index - 1] != byte { index -= 1 }
            start = index
        }

        func skipWord() {
            while start < end, bytes[start] != UInt8(ascii: " ") { start += 1 }
            while start < end, bytes[start] == UInt8(ascii: " ") { start += 1 }
        }

        /// The number that a file's name is.
        static func number<Name>(of name: inout Name) -> Int? {
            withUnsafePointer(to: &name) { name in
                name.withMemoryRebound(to: UInt8.self, capacity: MemoryLayout<Name>.size) { number($0, $0 + 20) }
            }
        }

        private static func number(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> Int? {
            var (place, number) = (start, 0)
            while place < end, place.pointee >= 0x30, place.pointee <= 0x39 {
                number = number * 10 + Int(place.pointee - 0x30)
                place += 1
            }
            return place > start ? number : nil
        }
    }
}

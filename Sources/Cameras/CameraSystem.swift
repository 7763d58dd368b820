import Glibc

/// The calls of the system that a camera needs: the seam between what a driver answers and what is made of it.
package protocol CameraSystem: Sendable {
    /// The names of the files in a folder; none if it cannot be read.
    func names(in folder: String) -> [String]
    /// Opens a device file for reading and writing, without ever waiting in it.
    func open(_ path: String) throws(CameraFault) -> Int32
    /// One ioctl(2), whose argument points to the structure that belongs to the request.
    func control(_ file: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) throws(CameraFault)
    /// Waits until the driver has an image, or an error; false if there is none in that time.
    func wait(for file: Int32, milliseconds: Int32) throws(CameraFault) -> Bool
    /// Maps a buffer of the driver.
    func map(_ file: Int32, length: Int, offset: Int) throws(CameraFault) -> UnsafeMutableRawBufferPointer
    func unmap(_ memory: UnsafeMutableRawBufferPointer)
    func close(_ file: Int32)
}

/// A call that the system refused, with the number that `errno` had.
package struct CameraFault: Error, Hashable, Sendable {
    package let code: Int32

    package init(code: Int32) { self.code = code }
}

/// The Linux kernel itself.
struct KernelCameraSystem: CameraSystem {
    func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while names.count < 4096, let entry = readdir(directory) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names
    }

    func open(_ path: String) throws(CameraFault) -> Int32 {
        let file = Glibc.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        guard file >= 0 else { throw CameraFault(code: errno) }
        return file
    }

    func control(_ file: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) throws(CameraFault) {
        for _ in 0..<Self.interruptions {
            if ioctl(file, request, argument) >= 0 { return }
            let code = errno
            guard code == EINTR else { throw CameraFault(code: code) }
        }
        throw CameraFault(code: EINTR)
    }

    func wait(for file: Int32, milliseconds: Int32) throws(CameraFault) -> Bool {
        var descriptor = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
        let count = poll(&descriptor, 1, milliseconds)
        if count < 0 {
            let code = errno
            guard code == EINTR else { throw CameraFault(code: code) }
            return false
        }
        return count > 0
    }

    func map(_ file: Int32, length: Int, offset: Int) throws(CameraFault) -> UnsafeMutableRawBufferPointer {
        let start = mmap(nil, length, PROT_READ, MAP_SHARED, file, off_t(offset))
        guard let start, start != MAP_FAILED else { throw CameraFault(code: errno) }
        return UnsafeMutableRawBufferPointer(start: start, count: length)
    }

    func unmap(_ memory: UnsafeMutableRawBufferPointer) { munmap(memory.baseAddress, memory.count) }

    func close(_ file: Int32) { _ = Glibc.close(file) }

    /// A process that gets signals without end is not waited for.
    private static let interruptions = 1000
}

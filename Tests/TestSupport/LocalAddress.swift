import Foundation
public import Glibc

/// The address of `port` on 127.0.0.1, for bind(2) and connect(2).
///
/// Tests of a module that stands on NIO cannot make one themselves: `sockaddr_in` belongs to Glibc or to NIO's own C module,
/// whichever the compiler loads first, and only the former can be imported.
public func withLocalAddress<R>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}

/// The port that a socket of IPv4 is bound to.
public func localPort(of socket: CInt) throws -> UInt16 {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
    }
    guard status == 0 else { throw POSIXError(.ENOTSOCK) }
    return UInt16(bigEndian: address.sin_port)
}

/// A port on which nobody listens, and which the kernel gives to nobody else while this lives.  A program that is told its
/// number can listen there, if it sets SO_REUSEADDR.
public final class ReservedPort: Sendable {
    public let number: UInt16
    private let file: CInt

    /// - Parameter number: 0: any.
    /// - Throws: `POSIXError`, where somebody else has it.
    public init(_ number: UInt16 = 0) throws {
        file = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var on: Int32 = 1
        setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        let file = file
        guard withLocalAddress(number, { bind(file, $0, $1) }) == 0 else { throw POSIXError(.EADDRINUSE) }
        self.number = try localPort(of: file)
    }

    deinit { close(file) }
}

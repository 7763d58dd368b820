import Glibc

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

nonisolated(unsafe) private var body: ([UInt8]) throws -> Void = { _ in }

/// Has libFuzzer call `test` with one input after the other, as the program's arguments tell it.  What `test` throws ends the
/// program, as a trap does.
public func fuzz(_ test: @escaping ([UInt8]) throws -> Void) -> Never {
    body = test
    var count = CommandLine.argc
    var arguments = CommandLine.unsafeArgv
    let status = runDriver(&count, &arguments) { start, count in
        do { try body(Array(UnsafeBufferPointer(start: start, count: count))) } catch { fatalError("\(error)") }
        return 0
    }
    exit(status)
}

import Glibc

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

nonisolated(unsafe) private var body: ([UInt8]) throws -> Void = { _ in }

/// Makes libFuzzer call `test` with one input after another, as the program's arguments specify.  An error of `test`
/// ends the program, as a trap does.
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

// Goes on with the DUKPT state in a file, and seals until it is killed or has sealed COUNT times; writes the key serial
// number of each envelope as a line.
//
//     ksn-spender FILE [COUNT]
import CardEncryption
import Glibc

let arguments = CommandLine.arguments
guard arguments.count > 1 else { exit(64) }
do {
    let wrapping: WrappingKey? =
        getenv("CREDENTIALS_DIRECTORY") == nil ? nil : try .systemdCredential("card-encryption")
    let device = try await AESDUKPTDevice(resuming: KeyFile(arguments[1], wrappedBy: wrapping))
    let data = try ClearCardData(Array("# TEST".utf8))
    var left = arguments.count > 2 ? Int(arguments[2]) ?? 0 : Int.max
    while left > 0 {
        left -= 1
        guard case .aesDUKPT(let envelope) = try await device.seal(data) else { exit(70) }
        // One call, so that a line is written whole or not at all.
        let line = Array("\(envelope.keySerialNumber)\n".utf8)
        _ = write(1, line, line.count)
    }
} catch {
    let line = Array("\(error)\n".utf8)
    _ = write(2, line, line.count)
    exit(1)
}

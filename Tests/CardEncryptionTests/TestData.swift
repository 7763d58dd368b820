import Foundation
import TestSupport
import Testing

@testable import CardEncryption

/// Bytes of hexadecimal digits, which may have spaces between.
func hex(_ text: String) throws -> [UInt8] {
    let digits = Array(text.filter { $0 != " " && $0 != "\n" })
    try #require(digits.count.isMultiple(of: 2))
    return try stride(from: 0, to: digits.count, by: 2).map {
        try #require(UInt8(String(digits[$0..<($0 + 2)]), radix: 16))
    }
}

extension SecretKey {
    convenience init(hex text: String) throws { self.init(try CardEncryptionTests.hex(text)) }

    var hex: String { withUnsafeBytes { $0.hex } }
}

/// Card data of a test card: PAN and expiry as BER-TLV.  # TEST
let testRecord: [UInt8] = [
    0x5A, 0x08, 0x47, 0x61, 0x73, 0x90, 0x01, 0x01, 0x00, 0x10, 0x5F, 0x24, 0x03, 0x31, 0x12, 0x31,
]

/// Where this target's own files are.
let testFolder = URL(filePath: #filePath).deletingLastPathComponent()

/// A folder that goes with the value.
final class Folder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "card-encryption-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String, wrappedBy key: WrappingKey? = nil) -> KeyFile {
        KeyFile(path + "/" + name, wrappedBy: key)
    }
}

/// The contents of a file of keys.
func contents(of file: KeyFile, kind: KeyFile.Kind = .aesDUKPT) throws -> [UInt8] {
    try LockedKeyFile(file, isThere: true).read(kind: kind).withUnsafeBytes { Array($0) }
}

/// Makes a file of keys of these contents.
func make(_ file: KeyFile, _ contents: [UInt8], kind: KeyFile.Kind) throws {
    try contents.withUnsafeBytes { try LockedKeyFile(file, isThere: false).create($0, kind: kind) }
}

/// Runs one of `Judges`.
func judged(by name: String, _ arguments: [String], input: String = "", path: String = "") async throws
    -> Program.Outcome
{
    try await Program.run(
        [python, testFolder.appending(path: "Judges/\(name)").path] + arguments, environment: ["PYTHONPATH": path],
        input: input)
}

/// Debian's Python, which has Debian's modules.
let python = "/usr/bin/python3"

func pythonHas(_ module: String, path: String? = nil) -> Bool {
    let process = Process()
    process.executableURL = URL(filePath: python)
    process.arguments = ["-c", "import \(module)"]
    process.standardError = FileHandle.nullDevice
    if let path { process.environment = ["PYTHONPATH": path] }
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
}

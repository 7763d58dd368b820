import Foundation
import Glibc
import TestSupport
import Testing

@testable import CardEncryption

struct KeyFileTests {
    private static let identifier: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

    private static func wrappingKey(_ byte: UInt8 = 0x33) -> WrappingKey? {
        WrappingKey(SecretKey([UInt8](repeating: byte, count: 32)))
    }

    /// A file with the state of a new device, 3 counters of which are used up; its bytes.
    private func used(_ file: KeyFile) async throws -> [UInt8] {
        let device = try await AESDUKPTDevice(
            loading: SecretKey([UInt8](repeating: 0xF1, count: 16)), initialKeyID: Self.identifier, into: file)
        for _ in 0..<3 { _ = try await device.seal(ClearCardData(testRecord)) }
        return Array(try Data(contentsOf: URL(filePath: file.path)))
    }

    private func counter(_ sealed: SealedCardData) -> UInt32? {
        if case .aesDUKPT(let envelope) = sealed { envelope.keySerialNumber.counter } else { nil }
    }

    // MARK: What it says and how it is protected

    @Test(arguments: [true, false])
    func firstLineTellsWhetherItIsWrapped(wrapped: Bool) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state", wrappedBy: wrapped ? Self.wrappingKey() : nil)
        let bytes = try await used(file)
        let line = "card-encryption 1, AES DUKPT state, \(wrapped ? "wrapped with A256GCM" : "not wrapped")\n"
        #expect(bytes.starts(with: line.utf8))
        // The register of counter 4 is in the file in the clear, or is not.
        let scheme = AESDUKPTScheme(initialKeyID: Self.identifier, length: .bits128)
        let key = try scheme.transactionKey(
            initialKey: SecretKey([UInt8](repeating: 0xF1, count: 16)), counter: 4)
        #expect(bytes.hex.contains(key.hex) == !wrapped)
        var status = stat()
        #expect(lstat(file.path, &status) == 0 && status.st_mode == S_IFREG | 0o600)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["state", "state.lock"])
    }

    @Test(arguments: [0o644, 0o640, 0o602, 0o601] as [mode_t])
    func fileThatOthersCanUseIsRefused(mode: mode_t) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        #expect(chmod(file.path, mode) == 0)
        await #expect(throws: KeyFileError(.notPrivate, file.path)) { try await AESDUKPTDevice(resuming: file) }
    }

    @Test func linksFoldersAndPipesAreRefused() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        let link = folder.file("link")
        #expect(symlink(file.path, link.path) == 0)
        #expect(throws: KeyFileError(.notPrivate, link.path)) { try link.read(kind: .aesDUKPT) }
        #expect(throws: KeyFileError(.notPrivate, folder.path)) { try KeyFile(folder.path).read(kind: .aesDUKPT) }
        let pipe = folder.file("pipe")
        #expect(mkfifo(pipe.path, 0o600) == 0)
        #expect(throws: KeyFileError(.notPrivate, pipe.path)) { try pipe.read(kind: .aesDUKPT) }
    }

    // MARK: Damage

    @Test(arguments: [true, false])
    func tornAndChangedFilesAreRefused(wrapped: Bool) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state", wrappedBy: wrapped ? Self.wrappingKey() : nil)
        let bytes = try await used(file)
        let line = try #require(bytes.firstIndex(of: 0x0A)) + 1
        func refusal(_ bytes: [UInt8]) throws -> KeyFileError.Reason? {
            try Data(bytes).write(to: URL(filePath: file.path))
            do {
                _ = try file.read(kind: .aesDUKPT)
                return nil
            } catch {
                return error.reason
            }
        }
        for count in 0..<bytes.count {
            #expect(try refusal(Array(bytes.prefix(count))) == (count < line ? .foreign : .notAuthentic))
        }
        for offset in bytes.indices {
            var changed = bytes
            changed[offset] ^= 1
            #expect(try refusal(changed) == (offset < line ? .foreign : .notAuthentic))
        }
        #expect(try refusal(bytes + [0]) == .notAuthentic)
        #expect(try refusal(bytes + [UInt8](repeating: 0, count: 1 << 16)) == .foreign)
        #expect(try refusal(bytes) == nil)
    }

    @Test func filesOfOthersAreRefused() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (plain, wrapped) = (folder.file("plain"), folder.file("wrapped", wrappedBy: Self.wrappingKey()))
        _ = try await used(plain)
        _ = try await used(wrapped)
        for (file, reason) in [
            (folder.file("none"), KeyFileError.Reason.missing), (folder.file("wrapped"), .wrapped),
            (folder.file("wrapped", wrappedBy: Self.wrappingKey(0x34)), .notAuthentic),
            (folder.file("plain", wrappedBy: Self.wrappingKey()), .notWrapped),
        ] {
            #expect(throws: KeyFileError(reason, file.path)) { try file.read(kind: .aesDUKPT) }
        }
        await #expect(throws: KeyFileError(.kind("AES DUKPT state"), plain.path)) {
            try await TDESDUKPTDevice(resuming: plain)
        }
        #expect(throws: KeyFileError(.kind("AES DUKPT state"), plain.path)) { try JWEPrivateKey(plain) }
    }

    /// Contents that are authentic and contradict themselves: no length, no counter, a key too few.
    @Test(arguments: [
        "", "0102030405060708", "0102030405060708 11 00000001", "0102030405060708 10 0001FFFF",
        "0102030405060708 10 00000001 00112233445566778899AABBCCDDEEFF",
    ])
    func contentsThatContradictThemselvesAreRefused(contents: String) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        try hex(contents).withUnsafeBytes { try file.write($0, kind: .aesDUKPT) }
        await #expect(throws: KeyFileError(.malformed, file.path)) { try await AESDUKPTDevice(resuming: file) }
    }

    // MARK: Counters

    @Test(arguments: [true, false])
    func nextProcessGoesOn(wrapped: Bool) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state", wrappedBy: wrapped ? Self.wrappingKey() : nil)
        _ = try await used(file)
        for expected in [4, 5] as [UInt32] {
            let device = try await AESDUKPTDevice(resuming: file)
            #expect(counter(try await device.seal(ClearCardData(testRecord))) == expected)
        }
    }

    @Test func keysAreNotLoadedOverOthers() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        let before = try await used(file)
        await #expect(throws: KeyFileError(.exists, file.path)) { _ = try await self.used(file) }
        #expect(try Array(Data(contentsOf: URL(filePath: file.path))) == before)
    }

    @Test func oneAtATimeUsesTheFile() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        let device = try await AESDUKPTDevice(resuming: file)
        await #expect(throws: KeyFileError(.inUse, file.path)) { try await AESDUKPTDevice(resuming: file) }
        let other = try await Program.run([Program.built("ksn-spender"), file.path, "1"])
        #expect(other.status == 1 && other.error == "\(file.path): in use\n" && other.output.isEmpty)
        #expect(counter(try await device.seal(ClearCardData(testRecord))) == 4)
    }

    /// Nothing is sealed under a key that the disk still has.
    @Test func nothingIsSealedBeforeTheStateIsWritten() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        let device = try await AESDUKPTDevice(resuming: file)
        let elsewhere = folder.path + ".away"
        #expect(rename(folder.path, elsewhere) == 0)
        await #expect(throws: KeyFileError(.system(ENOENT), file.path + ".new")) {
            try await device.seal(ClearCardData(testRecord))
        }
        #expect(rename(elsewhere, folder.path) == 0)
        #expect(counter(try await device.seal(ClearCardData(testRecord))) == 5)
    }

    /// What SIGKILL cannot show, since the kernel keeps what it has: contents, then name, are on the disk before anything
    /// comes out.
    @Test(.enabled(if: Program.isInstalled("strace"), "strace is not installed"))
    func stateIsForcedToTheDiskBeforeAnythingComesOut() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        let log = folder.path + "/log"
        let traced = try await Program.run([
            "strace", "-f", "-o", log, "-e", "trace=openat,write,fsync,rename,renameat,renameat2",
            Program.built("ksn-spender"), file.path, "1",
        ])
        #expect(traced.status == 0 && traced.output == "010203040506070800000004\n", "\(traced)")
        var calls: [String] = []
        for line in String(decoding: try Data(contentsOf: URL(filePath: log)), as: UTF8.self).split(separator: "\n") {
            if line.contains("state.new\", O_WRONLY") { calls.append("open") }
            if line.contains("card-encryption 1") { calls.append("write") }
            if line.contains("fsync(") { calls.append("fsync") }
            if line.contains("rename"), line.contains("state.new") { calls.append("rename") }
            if line.contains("\"\(folder.path)\", O_RDONLY") { calls.append("open folder") }
            if line.contains("write(1,") { calls.append("out") }
        }
        #expect(calls == ["open", "write", "fsync", "rename", "open folder", "fsync", "out"])
    }

    /// A process is killed at any moment, sixty times; whatever it had sealed, no counter comes twice.
    @Test func noCounterComesTwiceWhateverIsKilled() async throws {
        let folder = try Folder()
        try Data([UInt8](repeating: 0x33, count: 32)).write(to: URL(filePath: folder.path + "/card-encryption"))
        let file = folder.file("state", wrappedBy: Self.wrappingKey())
        _ = try await used(file)
        var random = SplitMix(state: 11)
        var seen: [UInt32] = []
        for round in 0..<60 {
            let program = try Program(
                [Program.built("ksn-spender"), file.path], environment: ["CREDENTIALS_DIRECTORY": folder.path])
            // Now and then before it has sealed anything.
            if round % 6 != 0 { try await program.wait(for: "a line") { !$0.output.isEmpty } }
            try await Task.sleep(for: .microseconds(Int.random(in: 0..<20_000, using: &random)))
            program.signal(SIGKILL)
            let outcome = try await program.outcome()
            #expect(outcome.status == 128 + SIGKILL, "\(outcome)")
            for line in outcome.output.split(separator: "\n") {
                seen.append(try AESKeySerialNumber(hex(String(line))).counter)
            }
        }
        #expect(seen.count > 60)
        // Strictly rising is never twice, across processes too.
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 })
        let device = try await AESDUKPTDevice(resuming: file)
        #expect(try #require(counter(try await device.seal(ClearCardData(testRecord)))) > (seen.last ?? 0))
    }

    // MARK: Credentials

    @Test func systemdCredentialIsTheWrappingKey() throws {
        let folder = try Folder()
        #expect(try WrappingKey.systemdCredential("key", in: nil) == nil)
        #expect(try WrappingKey.systemdCredential("key", in: folder.path) == nil)
        try Data([UInt8](repeating: 0x33, count: 32)).write(to: URL(filePath: folder.path + "/key"))
        try Data([UInt8](repeating: 0x33, count: 31)).write(to: URL(filePath: folder.path + "/short"))
        let key = try #require(try WrappingKey.systemdCredential("key", in: folder.path))
        #expect(key.key == Self.wrappingKey()?.key)
        #expect(throws: KeyFileError(.credential(31), folder.path + "/short")) {
            try WrappingKey.systemdCredential("short", in: folder.path)
        }
        #expect(try WrappingKey.systemdCredential("../" + folder.path, in: folder.path) == nil)
    }

    @Test(arguments: JWEAlgorithm.allCases)
    func privateKeysRest(algorithm: JWEAlgorithm) throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let key = try JWEPrivateKey(generating: algorithm, keyID: algorithm == .ecdhES ? nil : "kid 1")
        let file = folder.file("key", wrappedBy: Self.wrappingKey())
        try key.save(to: file)
        #expect(try JWEPrivateKey(file).publicJWK == key.publicJWK)
        try "\u{5}\u{0}x".utf8.withContiguousStorageIfAvailable {
            try file.write(UnsafeRawBufferPointer($0), kind: .jwePrivateKey)
        }
        #expect(throws: KeyFileError(.malformed, file.path)) { try JWEPrivateKey(file) }
    }
}

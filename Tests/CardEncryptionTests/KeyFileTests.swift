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
        let state = wrapped ? "wrapped with A256GCM" : "not wrapped"
        #expect(bytes.starts(with: "card-encryption 2, AES DUKPT state, \(state), \"state\"\n".utf8))
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
        let inside = folder.file("folder")
        #expect(mkdir(inside.path, 0o700) == 0)
        let pipe = folder.file("pipe")
        #expect(mkfifo(pipe.path, 0o600) == 0)
        for file in [link, inside, pipe] {
            #expect(throws: KeyFileError(.notPrivate, file.path)) { try contents(of: file) }
        }
        for (name, ending) in [("a", ".lock"), ("b", ".new"), ("c", ".old")] {
            let planted = folder.file(name)
            #expect(symlink(file.path, planted.path + ending) == 0)
            await #expect(throws: KeyFileError(.notPrivate, planted.path + ending)) { try await self.used(planted) }
        }
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root can give files away"),
        arguments: ["state", "state.lock", "state.old", ""])
    func filesAndFoldersOfOthersAreRefused(name: String) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        let path = name.isEmpty ? folder.path : folder.path + "/" + name
        if name == "state.old" { #expect(FileManager.default.createFile(atPath: path, contents: nil)) }
        #expect(chmod(path, name.isEmpty ? 0o700 : 0o600) == 0 && chown(path, 65534, 65534) == 0)
        await #expect(throws: KeyFileError(name.isEmpty ? .folderNotPrivate : .notPrivate, path)) {
            try await AESDUKPTDevice(resuming: file)
        }
    }

    /// Who can rename what is in the folder can put an old state in the place of the new one.
    @Test(arguments: [(0o777, false), (0o770, false), (0o702, false), (0o1777, true), (0o755, true), (0o700, true)])
    func folderThatOthersCanWriteToIsRefused(mode: Int, isTaken: Bool) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        #expect(chmod(folder.path, mode_t(mode)) == 0)
        if isTaken {
            _ = try await AESDUKPTDevice(resuming: file)
        } else {
            let error = KeyFileError(.folderNotPrivate, folder.path)
            await #expect(throws: error) { try await AESDUKPTDevice(resuming: file) }
            await #expect(throws: error) { _ = try await self.used(folder.file("other")) }
        }
    }

    /// Nothing is made where nothing is found.
    @Test func missingFileLeavesNothingBehind() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        for name in ["state", "folder/state"] {
            let file = folder.file(name)
            await #expect(throws: KeyFileError(.missing, file.path)) { try await AESDUKPTDevice(resuming: file) }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        await #expect(throws: KeyFileError(.system(ENOENT), folder.path + "/folder")) {
            _ = try await self.used(folder.file("folder/state"))
        }
    }

    // MARK: Erasing

    /// The file that the path names now, whatever it names later.
    private func bytes(ofFileBehind descriptor: Int32) -> [UInt8] {
        var bytes = [UInt8](repeating: 0xFF, count: 4096)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    /// The file that had the state with a key has nothing of it when the key has been used.
    @Test(arguments: [true, false])
    func usedKeysAreErasedOnTheDisk(wrapped: Bool) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state", wrappedBy: wrapped ? Self.wrappingKey() : nil)
        _ = try await used(file)
        let device = try await AESDUKPTDevice(resuming: file)
        for _ in 0..<3 {
            let before = open(file.path, O_RDONLY | O_CLOEXEC)
            try #require(before >= 0)
            defer { close(before) }
            let length = bytes(ofFileBehind: before).count
            #expect(length > 500)
            _ = try await device.seal(ClearCardData(testRecord))
            #expect(bytes(ofFileBehind: before) == [UInt8](repeating: 0, count: length))
        }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["state", "state.lock"])
    }

    /// Wherever a process was killed: the next erases what is not in use, and only that.
    @Test(arguments: [".new", ".old"])
    func whatAKilledProcessLeavesIsErased(ending: String) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        let state = try await used(file)
        let path = file.path + ending
        #expect(FileManager.default.createFile(atPath: path, contents: Data(state)) && chmod(path, 0o600) == 0)
        let left = open(path, O_RDONLY | O_CLOEXEC)
        try #require(left >= 0)
        defer { close(left) }
        _ = try await AESDUKPTDevice(resuming: file)
        #expect(bytes(ofFileBehind: left) == [UInt8](repeating: 0, count: state.count))
        // Between two names: both are those of the version in use.
        #expect(link(file.path, path) == 0)
        let device = try await AESDUKPTDevice(resuming: file)
        #expect(counter(try await device.seal(ClearCardData(testRecord))) == 4)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["state", "state.lock"])
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
                _ = try contents(of: file)
                return nil
            } catch let error as KeyFileError {
                return error.reason
            }
        }
        for count in 0..<bytes.count {
            #expect(try refusal(Array(bytes.prefix(count))) == (count < line ? .foreign : .notAuthentic))
        }
        for offset in bytes.indices {
            var changed = bytes
            changed[offset] ^= 1
            switch try refusal(changed) {
            // A letter of the name, which is between the last two quotation marks of the line.
            case .name(let name): #expect(name != "state" && (line - 7..<line - 2).contains(offset))
            case let reason: #expect(reason == (offset < line ? .foreign : .notAuthentic))
            }
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
            #expect(throws: KeyFileError(reason, file.path)) { try contents(of: file) }
        }
        await #expect(throws: KeyFileError(.kind("AES DUKPT state"), plain.path)) {
            try await TDESDUKPTDevice(resuming: plain)
        }
        #expect(throws: KeyFileError(.kind("AES DUKPT state"), plain.path)) { try JWEPrivateKey(plain) }
    }

    /// Two devices of one merchant, two keys of one device: a file that has got the name of another is not taken for it,
    /// neither by those who read it nor by those who would write over it.
    @Test(arguments: [true, false])
    func filesThatAreCopiedOrRenamedAreRefused(wrapped: Bool) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let wrapping = wrapped ? Self.wrappingKey() : nil
        let names = ["state", "state 2", "state\n\"\u{E9}\" " + String(repeating: "x", count: 200)]
        for name in names { _ = try await used(folder.file(name, wrappedBy: wrapping)) }
        let copy = folder.file("copy", wrappedBy: wrapping)
        for name in names {
            let file = folder.file(name, wrappedBy: wrapping)
            #expect(rename(file.path, copy.path) == 0)
            await #expect(throws: KeyFileError(.name(name), copy.path)) { try await AESDUKPTDevice(resuming: copy) }
            #expect(rename(copy.path, file.path) == 0)
            _ = try contents(of: file)
        }
        let key = folder.file("key", wrappedBy: wrapping)
        try JWEPrivateKey(generating: .ecdhES).save(to: folder.file("other key", wrappedBy: wrapping))
        #expect(rename(folder.path + "/other key", key.path) == 0)
        #expect(throws: KeyFileError(.name("other key"), key.path)) { try JWEPrivateKey(key) }
        #expect(throws: KeyFileError(.name("other key"), key.path)) {
            try JWEPrivateKey(generating: .ecdhES).save(to: key)
        }
    }

    /// What nobody was ever given: it is told from other people's files.
    @Test func filesOfAnOlderVersionAreRefused() throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        let old = Data("card-encryption 1, AES DUKPT state, not wrapped\n".utf8) + Data(count: 32)
        #expect(FileManager.default.createFile(atPath: file.path, contents: old) && chmod(file.path, 0o600) == 0)
        #expect(throws: KeyFileError(.older, file.path)) { try contents(of: file) }
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
        try make(file, hex(contents), kind: .aesDUKPT)
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

    /// A program that is being started has copies of this process's descriptors for a moment.
    @Test func lockThatIsGivenBackIsWaitedFor() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        let copy = open(file.path + ".lock", O_RDONLY | O_CLOEXEC)
        #expect(flock(copy, LOCK_EX) == 0)
        Thread.detachNewThread {
            usleep(300_000)
            close(copy)
        }
        _ = try LockedKeyFile(file, isThere: true, patience: .seconds(120))
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
        #expect(mkdir(file.path + ".new", 0o700) == 0)
        await #expect(throws: KeyFileError(.system(EEXIST), file.path + ".new")) {
            try await device.seal(ClearCardData(testRecord))
        }
        #expect(rmdir(file.path + ".new") == 0)
        #expect(counter(try await device.seal(ClearCardData(testRecord))) == 5)
    }

    /// What SIGKILL cannot show, since the kernel keeps what it has: contents, then name, are on the disk before anything
    /// comes out.
    @Test(
        .enabled(if: Program.isInstalled("strace"), "strace is not installed"),
        .unsanitized(by: .address, because: "the search for leaks cannot end a program that strace watches"))
    func stateIsForcedToTheDiskBeforeAnythingComesOut() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        _ = try await used(file)
        let log = folder.path + "/log"
        let traced = try await Program.run([
            "strace", "-f", "-o", log, "-e",
            "trace=openat,write,fsync,fdatasync,linkat,rename,renameat,renameat2,unlinkat",
            Program.built("ksn-spender"), file.path, "1",
        ])
        #expect(traced.status == 0 && traced.output == "010203040506070800000004\n", "\(traced)")
        var calls: [String] = []
        for line in String(decoding: try Data(contentsOf: URL(filePath: log)), as: UTF8.self).split(separator: "\n") {
            for (part, call) in [
                ("state.new\", O_WRONLY|O_CREAT", "make"), ("\"card-encryption 2", "write"), (" fsync(", "fsync"),
                (" linkat(", "name the old"), ("state.new\", ", "rename"), ("state.old\", O_WRONLY", "open the old"),
                ("\"\\0\\0\\0\\0", "write zeros"), ("fdatasync(", "fdatasync"), ("unlinkat(", "remove the old"),
            ] where line.contains(part) && !line.contains("= -1") {
                if call == "rename", !line.contains("rename") { continue }
                calls.append(call)
            }
            if line.contains("write(1,") { calls.append("out") }
        }
        #expect(
            calls == [
                "make", "write", "fsync", "name the old", "rename", "fsync", "open the old", "write zeros", "fdatasync",
                "remove the old", "out",
            ])
    }

    /// A process is killed at any moment, in the thorough tier sixty times; whatever it had sealed, no counter comes twice.
    @Test func noCounterComesTwiceWhateverIsKilled() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        try Data([UInt8](repeating: 0x33, count: 32)).write(to: URL(filePath: folder.path + "/card-encryption"))
        let file = folder.file("state", wrappedBy: Self.wrappingKey())
        _ = try await used(file)
        var random = SplitMix(state: 11)
        var seen: [UInt32] = []
        let kills = Tier.rounds(8, thorough: 60)
        for round in 0..<kills {
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
        #expect(seen.count > kills)
        // Strictly rising is never twice, across processes too.
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 })
        let device = try await AESDUKPTDevice(resuming: file)
        #expect(try #require(counter(try await device.seal(ClearCardData(testRecord)))) > (seen.last ?? 0))
    }

    // MARK: Credentials

    @Test func systemdCredentialIsTheWrappingKey() throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        for (name, count) in [("key", 32), ("short", 31), ("long", 4097)] {
            try Data([UInt8](repeating: 0x33, count: count)).write(to: URL(filePath: folder.path + "/" + name))
        }
        #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
        let key = try WrappingKey.systemdCredential("key", in: folder.path)
        #expect(key.withKey { $0 } == Self.wrappingKey()?.withKey { $0 })
        for (name, reason) in [
            ("short", KeyFileError.Reason.credential(31)), ("long", .credential(4097)), ("pipe", .notPrivate),
            ("kez", .noCredential),
        ] {
            #expect(throws: KeyFileError(reason, folder.path + "/" + name)) {
                try WrappingKey.systemdCredential(name, in: folder.path)
            }
        }
    }

    /// A wrong name, or a unit without the credential, wraps nothing; and so nothing is written.
    @Test(arguments: ["key", "", ".", "..", "../key"])
    func nothingIsWrittenUnwrappedForLackOfACredential(name: String) throws {
        #expect(throws: KeyFileError(.noCredential, name)) { try WrappingKey.systemdCredential(name, in: nil) }
        if name != "key" {
            #expect(throws: KeyFileError(.noCredential, name)) { try WrappingKey.systemdCredential(name, in: "/") }
        }
    }

    // MARK: Private keys

    @Test(arguments: JWEAlgorithm.allCases)
    func privateKeysRest(algorithm: JWEAlgorithm) throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let key = try #require(JWETests.keys[algorithm])
        let file = folder.file("key", wrappedBy: Self.wrappingKey())
        try key.save(to: file)
        let read = try JWEPrivateKey(file)
        #expect(read.publicJWK == key.publicJWK && read.algorithm == algorithm)
        // Over another of its kind.
        let other = try JWEPrivateKey(generating: .ecdhES, keyID: "other")
        try other.save(to: file)
        #expect(try JWEPrivateKey(file).publicJWK == other.publicJWK)
    }

    @Test(arguments: [nil, "", "kid 1", String(repeating: "k", count: 255)])
    func namesOfPrivateKeysRest(keyID: String?) throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        try JWEPrivateKey(generating: .ecdhES, keyID: keyID).save(to: folder.file("key"))
        #expect(try JWEPrivateKey(folder.file("key")).keyID == keyID)
    }

    /// A file as it was written once: the key of RFC 7518, appendix C, named A, for ECDH-ES; the digest by Python.  # TEST
    @Test func privateKeyOfAnEarlierProgramIsRead() throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("key")
        let text =
            "Y2FyZC1lbmNyeXB0aW9uIDIsIEpXRSBwcml2YXRlIGtleSwgbm90IHdyYXBwZWQsICJrZXkiCt7EaC6fO57uGTxd4Iac3V9In7DJQuzojQBgglB8"
            + "n/p3B0VDREgtRVMBAUHT83FpE9QxCgAm3nQbPxiJOvyBFPDIRoK6Z34xOhOYig=="
        let data = try #require(Data(base64Encoded: text))
        #expect(FileManager.default.createFile(atPath: file.path, contents: data) && chmod(file.path, 0o600) == 0)
        let key = try JWEPrivateKey(file)
        #expect(key.keyID == "A" && key.algorithm == .ecdhES)
        #expect(
            key.publicJWK.hasPrefix(#"{"kty":"EC","crv":"P-256","x":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0""#))
        // And is written the same.
        try key.save(to: file)
        #expect(try Data(contentsOf: URL(filePath: file.path)) == data)
    }

    /// No algorithm, another one, no mark, a third mark, a kid that ends early or is no UTF-8, no key.
    @Test(arguments: [
        "", "05 00 78", "07 454344482D4553", "03 646972 00 00", "07 454344482D4553 02 00", "07 454344482D4553 01 02 41",
        "07 454344482D4553 01 01 FF 00", "07 454344482D4553 00",
    ])
    func privateKeysThatContradictThemselvesAreRefused(contents: String) throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("key")
        try make(file, hex(contents), kind: .jwePrivateKey)
        #expect(throws: KeyFileError(.malformed, file.path)) { try JWEPrivateKey(file) }
    }

    @Test func privateKeysAreNotSavedOverOtherFiles() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        let state = try await used(file)
        let key = try JWEPrivateKey(generating: .ecdhES)
        #expect(throws: KeyFileError(.kind("AES DUKPT state"), file.path)) { try key.save(to: file) }
        let device = try await AESDUKPTDevice(resuming: file)
        #expect(throws: KeyFileError(.inUse, file.path)) { try key.save(to: file) }
        #expect(try Array(Data(contentsOf: URL(filePath: file.path))) == state)
        withExtendedLifetime(device) {}
        let text = folder.file("text")
        #expect(FileManager.default.createFile(atPath: text.path, contents: Data("text".utf8)))
        #expect(chmod(text.path, 0o600) == 0)
        #expect(throws: KeyFileError(.foreign, text.path)) { try key.save(to: text) }
        let long = try JWEPrivateKey(generating: .ecdhES, keyID: String(repeating: "k", count: 256))
        #expect(throws: KeyFileError(.tooLong(256), folder.path + "/long")) { try long.save(to: folder.file("long")) }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
                == ["state", "state.lock", "text", "text.lock"])
    }

    /// Never more than a file that can be read again.
    @Test func contentsThatDoNotFitAreRefused() throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        #expect(throws: KeyFileError.self) { try make(file, [UInt8](repeating: 1, count: 1 << 16), kind: .aesDUKPT) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["state.lock"])
    }
}

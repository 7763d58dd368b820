import CardEncryption
import Foundation
import ProximityReader
import SmartCard
import TestSupport
import Testing

/// The key file of a store: a credential that comes, goes or changes, and files that are another store's.
@Suite(.timeLimit(.minutes(30))) struct StoreKeyTests {
    private static func wrapping(_ byte: UInt8 = 0x33) -> WrappingKey? {
        WrappingKey(SecretKey([UInt8](repeating: byte, count: 32)))
    }

    private func store(_ bench: StoreBench, _ wrapping: WrappingKey?) -> RecordStore {
        RecordStore(folder: bench.folder, wrapping: wrapping) { [clock = bench.clock] in clock.now }
    }

    /// With two payments, its key not wrapped.
    private func unwrapped() async throws -> StoreBench {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b"] { try await store.add(StoreBench.payment(id)) }
        await store.close()
        return bench
    }

    /// Of the keys in a file that is not wrapped, the one that others are derived from: before the one that signs and the
    /// one that seals.
    private static func root(_ bench: StoreBench) throws -> Data {
        try Data(contentsOf: bench.file("store.key")).suffix(96).prefix(32)
    }

    private func isWrapped(_ bench: StoreBench) throws -> Bool {
        let bytes = try Data(contentsOf: bench.file("store.key"))
        let line = String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
        return line == #"card-encryption 2, device key, wrapped with A256GCM, "store.key""#
    }

    @Test("a store whose key was not wrapped has it wrapped where there is a credential, and loses nothing")
    func credentialComes() async throws {
        let bench = try await unwrapped()
        let root = try Self.root(bench)
        var leaf = ""
        do {
            let store = store(bench, nil)
            leaf = try await store.certificates().leafCertificate
            await store.close()
        }
        let later = store(bench, Self.wrapping())
        #expect(try await later.count() == 2)
        #expect(try isWrapped(bench))
        // The same device to the payment service, as before.
        #expect(try await later.certificates().leafCertificate == leaf)
        try await later.add(StoreBench.payment("c"))
        await later.close()
        for name in try FileManager.default.contentsOfDirectory(atPath: bench.folder.path) {
            #expect(try Data(contentsOf: bench.file(name)).range(of: root) == nil, "\(name)")
        }
        #expect(try await store(bench, Self.wrapping()).count() == 3)
    }

    @Test("a credential that goes or changes is an error, and never a new store")
    func credentialGoes() async throws {
        let bench = try await unwrapped()
        do {
            let store = store(bench, Self.wrapping())
            #expect(try await store.count() == 2)
            await store.close()
        }
        let key = try Data(contentsOf: bench.file("store.key"))
        for (wrapping, reason) in [
            (nil, "wrapped, and there is no wrapping key"), (Self.wrapping(0x34), "wrapped under another key"),
        ] {
            let store = store(bench, wrapping)
            for _ in 0..<2 {
                await #expect {
                    try await store.add(StoreBench.payment("c"))
                } throws: {
                    guard case StoreFailure.key(let text) = $0 else { return false }
                    return text.contains(reason)
                }
            }
            await store.close()
            #expect(try Data(contentsOf: bench.file("store.key")) == key)
        }
        #expect(try await store(bench, Self.wrapping()).count() == 2)
    }

    @Test("the key of another store is refused as that, and is not wrapped")
    func keyOfAnother() async throws {
        let (bench, other) = (try await unwrapped(), try await unwrapped())
        try FileManager.default.moveItem(at: bench.file("store.key"), to: bench.file("own"))
        try FileManager.default.copyItem(at: other.file("store.key"), to: bench.file("store.key"))
        await #expect {
            try await store(bench, Self.wrapping()).count()
        } throws: {
            guard case StoreFailure.key(let text) = $0 else { return false }
            return text.contains("another store's")
        }
        #expect(try !isWrapped(bench))
        // Nor is it taken under another name.
        try FileManager.default.removeItem(at: bench.file("store.key"))
        let renamed = KeyFile(bench.file("own").path)
        #expect(throws: KeyFileError.self) { try DeviceKey(renamed) { false } }
        try FileManager.default.moveItem(at: bench.file("own"), to: bench.file("store.key"))
        #expect(try await store(bench, Self.wrapping()).count() == 2)
    }

    @Test("a store of an older version is refused as that")
    func older() async throws {
        let bench = try await unwrapped()
        try Data("card-encryption 1, device key, not wrapped\n".utf8 + [UInt8](repeating: 0, count: 96))
            .write(to: bench.file("store.key"))
        await #expect(throws: StoreFailure.older) { try await store(bench, nil).count() }
    }

    /// `STORE_FAULTS=1` for every one of them.
    private static let stride = ProcessInfo.processInfo.environment["STORE_FAULTS"].flatMap(Int.init) ?? 1

    @Test(
        "each step of wrapping the key fails, or is the program's last: the old file or the new one is whole",
        .enabled(if: Program.isInstalled("strace"), "strace is not installed"),
        arguments: Tier.first(["signal=KILL"], then: ["error=EIO", "error=ENOSPC"]))
    func everyStep(_ fault: String) async throws {
        let made = try await unwrapped()
        let root = try Self.root(made)
        var wrapped: Set<Bool> = []
        for call in ["openat", "write", "fsync", "linkat", "renameat", "fdatasync", "unlinkat"] {
            var (count, ends) = (1, false)
            while !ends {
                let bench = try StoreBench()
                try FileManager.default.copyItem(at: made.folder, to: bench.file("store"))
                let credentials = bench.file("credentials")
                try FileManager.default.createDirectory(at: credentials, withIntermediateDirectories: false)
                let credential = ProximityReaderSystem.Configuration.storeCredential
                try Data(repeating: 0x33, count: 32).write(to: credentials.appending(path: credential))
                let folder = bench.file("store").path
                let paths = ["", "/store.key", "/store.key.new", "/store.key.old"]
                let traced = try await Program.run(
                    ["strace", "-f", "-qq", "-o", bench.file("log").path] + paths.flatMap { ["-P", folder + $0] }
                        + [
                            "-e", "trace=\(call)", "-e", "inject=\(call):\(fault):when=\(count)",
                            Program.built("store-worker"), bench.folder.path, "0", "fill", "0",
                        ], environment: ["CREDENTIALS_DIRECTORY": credentials.path])
                let log = try String(contentsOf: bench.file("log"), encoding: .utf8)
                ends = !log.contains("(INJECTED)") && !log.contains("killed by SIGKILL")
                let place = "\(fault) at \(call) \(count): \(traced)"
                // Whatever has happened: one of the two, whole; and with the credential it is wrapped in the end.
                let inFolder = { RecordStore(folder: bench.file("store"), wrapping: $0) { made.clock.now } }
                let before = inFolder(nil)
                do {
                    #expect(try await before.count() == 2, "\(place)")
                    wrapped.insert(false)
                } catch StoreFailure.key(let text) {
                    #expect(text.contains("wrapped, and there is no wrapping key"), "\(place)")
                    wrapped.insert(true)
                }
                await before.close()
                let after = inFolder(Self.wrapping())
                #expect(try await after.count() == 2, "\(place)")
                await after.close()
                for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
                    #expect(!name.hasSuffix(".new") && !name.hasSuffix(".old"), "\(name): \(place)")
                    let bytes = try Data(contentsOf: bench.file("store/" + name))
                    #expect(bytes.range(of: root) == nil, "\(name): \(place)")
                }
                count += Self.stride
                try #require(count < 100)
            }
        }
        #expect(wrapped == [true, false])
    }
}

import Crypto
import Foundation
import Glibc
import Testing

@testable import CardEncryption

/// What a store has keys for, and that no key is made of another's.
struct DeviceKeyTests {
    private static let wrapping = WrappingKey(SecretKey([UInt8](repeating: 0x33, count: 32)))

    /// TEST: identifier, root, signing key, sealing keys.
    private func contents(
        identifier: UInt8 = 1, root: UInt8 = 2, signing: UInt8 = 3, sealing: [UInt8] = [4]
    ) -> [UInt8] {
        [UInt8](repeating: identifier, count: 16)
            + [[root, signing], sealing].joined().flatMap { [UInt8](repeating: $0, count: 32) }
    }

    private func key(_ contents: [UInt8]) throws -> DeviceKey {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        try make(folder.file("key"), contents, kind: .deviceKey)
        return try DeviceKey(folder.file("key")) { false }
    }

    /// HKDF-SHA256 (RFC 5869) of 32 bytes 02 without salt, info `cards`: by Python's hmac.
    private static let published: [UInt8] = [
        0x2D, 0xEF, 0x0F, 0xB2, 0x90, 0x9E, 0xC4, 0x73, 0xCA, 0xB3, 0xDC, 0x81, 0x00, 0xB6, 0xCF, 0xF9,
        0x9E, 0x4D, 0x85, 0x47, 0xAF, 0x31, 0x5A, 0xC7, 0xF1, 0x43, 0xCF, 0x3A, 0x4A, 0xD8, 0x4F, 0x1D,
    ]

    @Test func whatIsDerivedComesFromTheRootAlone() throws {
        let derived = try key(contents()).derived(for: "cards")
        #expect(derived.withUnsafeBytes { Array($0) } == Self.published)
        #expect(try key(contents(identifier: 9, signing: 9, sealing: [9, 8])).derived(for: "cards") == derived)
        #expect(try key(contents(root: 9)).derived(for: "cards") != derived)
        #expect(try key(contents()).derived(for: "heads") != derived)
    }

    @Test func whatSignsIsNothingElse() throws {
        let signer = try key(contents()).signer
        #expect(
            try key(contents(root: 9, sealing: [9])).signer.publicKey.rawRepresentation
                == signer.publicKey.rawRepresentation)
        #expect(try key(contents(signing: 9)).signer.publicKey.rawRepresentation != signer.publicKey.rawRepresentation)
        let digest = SHA256.hash(data: Data("text".utf8))
        #expect(signer.publicKey.isValidSignature(try signer.sign(digest), for: digest))
    }

    @Test func whatSealsIsNothingElse() throws {
        let sealed = try key(contents()).seal(Data("text".utf8), as: Data("name".utf8))
        #expect(try key(contents(root: 9, signing: 9)).open(sealed, as: Data("name".utf8)) == Data("text".utf8))
        // The one before, while it is replaced.
        #expect(try key(contents(sealing: [9, 4])).open(sealed, as: Data("name".utf8)) == Data("text".utf8))
        #expect(throws: CryptoKitError.self) { try key(contents(sealing: [9])).open(sealed, as: Data("name".utf8)) }
        #expect(throws: CryptoKitError.self) { try key(contents()).open(sealed, as: Data("other".utf8)) }
    }

    @Test func newKeysAreNoOthers() throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        var keys: [DeviceKey] = []
        for name in ["a", "b"] {
            let key = try DeviceKey(folder.file(name)) { true }
            try key.save()
            keys.append(key)
        }
        #expect(keys[0].identifier != keys[1].identifier && keys[0].derived(for: "x") != keys[1].derived(for: "x"))
        let saved = try Data(contentsOf: URL(filePath: folder.path + "/a"))
        let raw = [Data(keys[0].identifier), keys[0].derived(for: "x").withUnsafeBytes { Data($0) }]
        #expect(saved.range(of: raw[0]) != nil && saved.range(of: raw[1]) == nil)
    }

    @Test(arguments: [0, 15, 16, 79, 80, 81, 111, 113, 143])
    func contentsThatContradictThemselvesAreRefused(count: Int) throws {
        #expect(throws: KeyFileError.self) { try key(Array(contents(sealing: [4, 5]).prefix(count))) }
    }

    @Test func theyPrintNothing() throws {
        var dumped = ""
        dump(try key(contents()), to: &dumped)
        #expect(dumped == "- device key #0\n")
    }

    // MARK: A credential that comes later

    @Test func aFileIsWrappedWhereItWasNot() throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let plain = folder.file("key")
        try make(plain, contents(), kind: .deviceKey)
        let before = open(plain.path, O_RDONLY | O_CLOEXEC)
        try #require(before >= 0)
        defer { close(before) }
        let file = folder.file("key", wrappedBy: Self.wrapping)
        do {
            let key = try DeviceKey(file) { false }
            #expect(key.isToBeWrapped)
            try key.wrap()
            #expect(!key.isToBeWrapped)
        }
        var left = [UInt8](repeating: 0xFF, count: 4096)
        let count = pread(before, &left, left.count, 0)
        #expect(count > 144 && left.prefix(count).allSatisfy { $0 == 0 })
        #expect(throws: KeyFileError(.wrapped, plain.path)) { try DeviceKey(plain) { false } }
        let other = folder.file("key", wrappedBy: WrappingKey(SecretKey([UInt8](repeating: 0x34, count: 32))))
        #expect(throws: KeyFileError(.notAuthentic, plain.path)) { try DeviceKey(other) { false } }
        let key = try DeviceKey(file) { false }
        #expect(!key.isToBeWrapped && key.identifier == [UInt8](repeating: 1, count: 16))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["key", "key.lock"])
    }

    /// Replacing a key writes the file, too.
    @Test func aFileThatIsWrittenAnewIsWrapped() throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        try make(folder.file("key"), contents(), kind: .deviceKey)
        let key = try DeviceKey(folder.file("key", wrappedBy: Self.wrapping)) { false }
        try key.replaceSealingKey()
        #expect(!key.isToBeWrapped)
    }

    /// Only who has checked what the keys are of has them wrapped: a state of DUKPT that somebody has put there is refused.
    @Test func otherFilesAreNotWrapped() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        _ = try await AESDUKPTDevice(
            loading: SecretKey([UInt8](repeating: 0xF1, count: 16)), initialKeyID: [1, 2, 3, 4, 5, 6, 7, 8],
            into: folder.file("state"))
        let file = folder.file("state", wrappedBy: Self.wrapping)
        await #expect(throws: KeyFileError(.notWrapped, file.path)) { try await AESDUKPTDevice(resuming: file) }
    }
}

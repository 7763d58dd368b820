import Foundation
import Glibc
import TestSupport
import Testing

@testable import CardEncryption

struct ClearCardDataTests {
    private struct Holder {
        let inside: Any
    }

    /// Everything that prints a value, for a value and for one inside another.
    private func printed(_ value: some Any) -> [String] {
        var out = ["\(value)", String(describing: value), String(reflecting: value)]
        for value in [value as Any, Holder(inside: value), [value]] {
            var dumped = ""
            dump(value, to: &dumped)
            out += [
                dumped, "\(value)", String(reflecting: value), "\(Mirror(reflecting: value).children.map(\.value))",
            ]
        }
        return out
    }

    @Test func nothingOfItIsPrinted() async throws {
        let marked = Array("4761739001010010".utf8)  // # TEST
        let data = try ClearCardData(marked)
        let key = SecretKey(marked + marked)
        let wrapping = try #require(WrappingKey(key))
        let privateKey = try JWEPrivateKey(jwk: JWETests.alice, algorithm: .ecdhES)
        let spellings = [
            "4761739001010010", marked.hex, marked.hex.lowercased(), Base64.standard.encode(marked),
            "\(marked)".dropFirst().dropLast().description, "0_NxaRPUMQoAJt50", "52, 55, 54",
        ]
        let host = try AESDUKPTHost(baseDerivationKey: SecretKey(marked))
        let legacyHost = try TDESDUKPTHost(baseDerivationKey: SecretKey(marked))
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let device = try await AESDUKPTDevice(
            loading: SecretKey(marked), initialKeyID: [1, 2, 3, 4, 5, 6, 7, 8], into: folder.file("state"))
        for text in printed(data) + printed(key) + printed(wrapping) + printed(privateKey)
            + printed(KeyFile("x", wrappedBy: wrapping)) + printed(host) + printed(legacyHost) + printed(device)
        {
            for spelling in spellings { #expect(!text.contains(spelling), "\(text)") }
        }
        #expect("\(data)" == "card data in the clear" && "\(key)" == "key of 256 bits")
        #expect(Mirror(reflecting: data).children.isEmpty && Mirror(reflecting: key).children.isEmpty)
        #expect(!((data as Any) is any Encodable) && !((data as Any) is any Hashable))
    }

    @Test func itHoldsWhatItIsFilledWith() throws {
        let data = try ClearCardData(capacity: 100) { buffer in
            #expect(buffer.count == 100 && buffer.allSatisfy { $0 == 0 })
            buffer.copyBytes(from: testRecord)
            return testRecord.count
        }
        #expect(data.withUnsafeBytes { Array($0) } == testRecord)
        #expect(try ClearCardData(testRecord).withUnsafeBytes { Array($0) } == testRecord)
        #expect(try ClearCardData([UInt8](repeating: 1, count: 0xFFFF)).withUnsafeBytes(\.count) == 0xFFFF)
    }

    @Test(arguments: [(0, 0), (-1, 0), (0x10000, 0), (10, 0), (10, 11), (10, -1), (Int.max, 1), (Int.min, 1)])
    func countsThatCannotBeAreRefused(capacity: Int, count: Int) {
        #expect(throws: ClearCardDataError.self) { try ClearCardData(capacity: capacity) { _ in count } }
    }

    /// What `/proc/self/smaps` says of the pages at an address.
    private func flags(of address: UnsafeRawPointer?) throws -> [Substring] {
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/smaps"))
        let smaps = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        let wanted = UInt(bitPattern: address)
        var found = false
        for line in smaps.split(separator: "\n") {
            let bounds = line.prefix { $0 != " " }.split(separator: "-")
            if bounds.count == 2, let start = UInt(bounds[0], radix: 16), let end = UInt(bounds[1], radix: 16) {
                found = (start..<end).contains(wanted)
            } else if found, line.hasPrefix("VmFlags:") {
                return line.split(separator: " ")
            }
        }
        return []
    }

    /// proc(5): `dd` for what a core dump leaves out, `dc` for what a forked child does not get.
    @Test func pagesStayOutOfCoreDumpsAndChildren() throws {
        let data = try ClearCardData(testRecord)
        let flags = try data.withUnsafeBytes { try self.flags(of: $0.baseAddress) }
        #expect(flags.contains("dd") && flags.contains("dc"))
    }

    /// Whether the system lets this process lock as much as one value takes.
    private static var canLock: Bool {
        let other = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 4096)
        defer { other.deallocate() }
        return mlock(other, 4096) == 0 && munlock(other, 4096) == 0
    }

    /// proc(5): `lo` for what is locked.
    @Test(
        .unsanitized(by: .address, .thread, because: "mlock does nothing"),
        .enabled(if: canLock, "RLIMIT_MEMLOCK lets this process lock no page"))
    func pagesStayOutOfTheSwapFile() throws {
        let data = try ClearCardData(testRecord)
        #expect(try data.withUnsafeBytes { try self.flags(of: $0.baseAddress) }.contains("lo"))
    }

    /// What is left of a page once `use` has given it up: its memory is exchanged for that of a file, which stays.
    private func remains(_ use: (_ watch: (UnsafeRawPointer?) throws -> Void) throws -> Void) throws -> [UInt8] {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = open(folder.path + "/page", O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        #expect(ftruncate(file, 4096) == 0)
        try use { address in
            let address = UnsafeMutableRawPointer(mutating: address)
            var page = [UInt8](repeating: 0, count: 4096)
            if let address { page.withUnsafeMutableBytes { $0.copyMemory(from: .init(start: address, count: 4096)) } }
            #expect(pwrite(file, page, page.count, 0) == page.count)
            let mapped = mmap(address, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0)
            try #require(address != nil && mapped == address)
        }
        var page = [UInt8](repeating: 0xFF, count: 4096)
        #expect(pread(file, &page, page.count, 0) == page.count)
        return page
    }

    @Test func itIsWipedWithTheLastReference() throws {
        let remains = try remains { watch in
            let data = try ClearCardData(testRecord)
            try data.withUnsafeBytes { try watch($0.baseAddress) }
            #expect(data.withUnsafeBytes { Array($0) } == testRecord)
        }
        #expect(remains == [UInt8](repeating: 0, count: 4096))
    }

    /// A key that is not whole, or card data of which more were written than counted.
    @Test func whatIsNotTakenIsWiped() throws {
        struct Stop: Error {}
        for body in [
            { (fill: (UnsafeMutableRawBufferPointer) throws -> Void) in
                _ = try? SecretKey(byteCount: 16) {
                    try fill($0)
                    throw Stop()
                }
            },
            { fill in
                _ = try? ClearCardData(capacity: 100) {
                    try fill($0)
                    return 101
                }
            },
        ] as [((UnsafeMutableRawBufferPointer) throws -> Void) -> Void] {
            let remains = try remains { watch in
                body { buffer in
                    buffer.copyBytes(from: testRecord)
                    try watch(buffer.baseAddress)
                }
            }
            #expect(remains == [UInt8](repeating: 0, count: 4096))
        }
    }

    @Test func dataThatAreTakenOverAreWiped() {
        var data = Data(testRecord)
        let storage = WipedStorage(moving: &data)
        #expect(storage.withUnsafeBytes { Array($0) } == testRecord)
        #expect(data == Data(count: testRecord.count))
    }

    @Test(arguments: [0, -1, 4097, Int.max, Int.min])
    func keysOfNoLengthAreRefused(count: Int) {
        #expect(throws: DUKPTError.keyLength(count)) { try SecretKey(byteCount: count) { _ in } }
    }

    @Test func keyHasWhatItIsFilledWith() throws {
        #expect(try SecretKey(byteCount: 16) { $0.copyBytes(from: testRecord) }.hex == testRecord.hex)
    }

    /// The examples of the module's page.
    @Test func examplesOfThePageDoWhatTheySay() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (record, serial, session) = (testRecord, "RR171-000001", "S-1")
        let key = try JWEPrivateKey(generating: .ecdhESA256KW)
        let recipient = try JWERecipient(jwk: key.publicJWK)
        let clear = try ClearCardData(capacity: record.count) { buffer in
            buffer.copyBytes(from: record)
            return record.count
        }
        let header = JWEHeader(contentType: "application/octet-stream", fields: ["rdr": serial, "sid": session])
        #expect(try recipient.seal(clear, header: header).description.hasPrefix("eyJhbGciOiJFQ0RILUVTK0EyNTZLVyIs"))

        try Data([UInt8](repeating: 0x33, count: 32)).write(to: URL(filePath: folder.path + "/card-encryption"))
        let file = KeyFile(
            folder.path + "/dukpt", wrappedBy: try .systemdCredential("card-encryption", in: folder.path))
        _ = try await AESDUKPTDevice(
            loading: SecretKey([UInt8](repeating: 0xF1, count: 16)), initialKeyID: hex("1234567890123456"), into: file)
        let device = try await AESDUKPTDevice(resuming: file)
        #expect(try await device.seal(clear).description.hasPrefix("ARAwABI0VniQEjRWAAAAA"))
    }

    /// RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"), ("\u{FB}", "w7s="),
    ])
    func base64IsThatOfTheRFC(text: String, encoded: String) throws {
        #expect(Base64.standard.encode(Array(text.utf8)) == encoded)
        #expect(try Base64.standard.decode(encoded.utf8) == Array(text.utf8))
        let unpadded = encoded.filter { $0 != "=" }
        #expect(Base64.url.encode(Array(text.utf8)) == unpadded)
        #expect(try Base64.url.decode(unpadded.utf8) == Array(text.utf8))
        if unpadded != encoded {
            #expect(throws: Base64.Fault(offset: unpadded.count)) { try Base64.url.decode(encoded.utf8) }
            #expect(throws: Base64.Fault.self) { try Base64.standard.decode(unpadded.utf8) }
        }
    }

    @Test func sealedDataIsOneStringInJSON() throws {
        let sealed = try SealedCardData(parsing: JWETests.good)
        let json = try JSONEncoder().encode([sealed])
        #expect(String(decoding: json, as: UTF8.self) == "[\"\(JWETests.good)\"]")
        #expect(try JSONDecoder().decode([SealedCardData].self, from: json) == [sealed])
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([SealedCardData].self, from: Data(#"["AQ"]"#.utf8))
        }
    }
}

import Foundation
import Glibc
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

    @Test func nothingOfItIsPrinted() throws {
        let marked = Array("4761739001010010".utf8)  // # TEST
        let data = try ClearCardData(marked)
        let key = SecretKey(marked + marked)
        let wrapping = try #require(WrappingKey(key))
        let privateKey = try JWEPrivateKey(jwk: JWETests.alice, algorithm: .ecdhES)
        let spellings = [
            "4761739001010010", marked.hex, marked.hex.lowercased(), Base64.standard.encode(marked),
            "\(marked)".dropFirst().dropLast().description, "0_NxaRPUMQoAJt50", "52, 55, 54",
        ]
        for text in printed(data) + printed(key) + printed(wrapping) + printed(privateKey)
            + printed(KeyFile("x", wrappedBy: wrapping))
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

    /// proc(5): `dd` for what a core dump leaves out, `lo` for what is locked.
    @Test func pagesStayOutOfCoreDumpsAndSwap() throws {
        let data = try ClearCardData(testRecord)
        let flags = try data.withUnsafeBytes { try self.flags(of: $0.baseAddress) }
        #expect(flags.contains("dd"))
        // Where the system lets this process lock as much again.
        let other = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 4096)
        defer { other.deallocate() }
        if mlock(other, 4096) == 0 {
            munlock(other, 4096)
            #expect(flags.contains("lo"))
        }
    }

    /// A process's own memory, read after the value has gone, has no more of it than that of one which never was.
    @Test func itIsGoneWithTheLastReference() throws {
        var data: ClearCardData? = try ClearCardData(testRecord)
        let address = data?.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } ?? 0
        data = nil
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(memory >= 0)
        defer { close(memory) }
        var bytes = [UInt8](repeating: 0, count: testRecord.count)
        let count = pread(memory, &bytes, bytes.count, off_t(address))
        // The page is unmapped, or another's by now.
        #expect(count <= 0 || bytes != testRecord)
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

        let file = KeyFile(folder.path + "/dukpt", wrappedBy: try .systemdCredential("card-encryption"))
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

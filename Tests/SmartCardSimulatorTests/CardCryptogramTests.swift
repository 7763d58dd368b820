import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

@Suite struct CardCryptogramTests {
    /// ISO/IEC 9797-1:2011, B.4: algorithm 3 over the 24 bytes of a text that ends on a block, and over 22.
    @Test(arguments: [
        ("Now is the time for all ", "", "A1C72E74EA3FA9B6"),  // padding method 1 adds nothing
        ("Now is the time for it", "0000", "2E2B1428CC78254F"),
        ("Now is the time for all ", "8000000000000000", "E9086230CA3BE796"),  // padding method 2
    ])
    func mac(text: String, padding: String, expected: String) throws {
        let key = try #require(TripleDES([UInt8](hex: "0123456789ABCDEF FEDCBA9876543210")))
        let mac = key.mac(Array(text.utf8) + (try [UInt8](hex: padding)))
        expectEqual(mac?.hex, expected)
    }

    @Test func macRefusesPartBlocks() throws {
        let key = try #require(TripleDES([UInt8](repeating: 1, count: 16)))
        expectEqual(key.mac([]), nil)
        expectEqual(key.mac([1, 2, 3]), nil)
        expectEqual(key.encrypt([1, 2, 3]), nil)
        expectEqual(TripleDES([1, 2, 3]), nil)
    }

    private func cryptogram(
        pan: String, sequence: UInt8, _ session: ApplicationCryptogram.SessionKey = .none
    ) throws -> ApplicationCryptogram {
        ApplicationCryptogram(
            issuerKey: try #require(TripleDES([UInt8](hex: "0123456789ABCDEF FEDCBA9876543210"))),
            pan: pan.utf8.map { $0 - 0x30 }, sequence: sequence, sessionKey: session, padding: .marker,
            data: [0x9F02, 0x9F03, 0x9F1A, 0x95, 0x5F2A, 0x9A, 0x9C, 0x9F37, 0x82, 0x9F36].map {
                .init(tag: $0, bytes: nil)
            })
    }

    /// The example in the documentation of PyEMV 1.5.0, `kd.derive_icc_mk_a`.
    @Test func masterKey() throws {
        let key = try cryptogram(pan: "99012345678901234", sequence: 0x45).masterKey
        expectEqual(key?.key.hex, "67F8292358083E5EA7AB7FDA58D53B6B")
    }

    /// `kd.derive_icc_mk_a` then `kd.derive_common_sk` of PyEMV 1.5.0: R is ATC 001C and zeros, or with UN 11223344.
    @Test(arguments: [
        (ApplicationCryptogram.SessionKey.none, "2F02C8B0E9CBC7B05B5167F7A1CDE6E5"),
        (.common, "0EF7B949D05854D6F461EC08B98A2F01"),
        (.mastercard, "4A407A894C02ABB929D99BE0E0BA1364"),
    ])
    func sessionKey(session: ApplicationCryptogram.SessionKey, expected: String) throws {
        let cryptogram = try cryptogram(pan: "4761739001010010", sequence: 0x01, session)
        let key = cryptogram.key(atc: [0x00, 0x1C], unpredictableNumber: [0x11, 0x22, 0x33, 0x44])
        expectEqual(key?.key.hex, expected)
    }

    /// `cvn.MasterCardCVN20(…).generate_ac` of PyEMV 1.5.0, which is M/Chip's version 14 in hexadecimal.
    @Test func commonSessionKeyOverCVR() throws {
        var cryptogram = try cryptogram(pan: "5413330089010434", sequence: 0x01, .common)
        cryptogram.data.append(.init(tag: 0x9F10, bytes: 3...8))
        let values: [TLVTag: String] = [
            0x9F02: "000000001234", 0x9F03: "000000000000", 0x9F1A: "0276", 0x95: "0000008001", 0x5F2A: "0978",
            0x9A: "261121", 0x9C: "00", 0x9F37: "11223344", 0x82: "1880", 0x9F36: "0011", 0x9F10: "0114A04003220000FF",
        ]
        expectEqual(cryptogram { values[$0].flatMap { try? [UInt8](hex: $0) } }?.hex, "BEEA8CDE8DDFCF79")
        expectEqual(cryptogram { _ in nil }, nil)
        expectEqual(cryptogram { $0 == 0x9F10 ? [1] : values[$0].flatMap { try? [UInt8](hex: $0) } }, nil)
    }
}

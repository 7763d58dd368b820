import CardReaders
import Foundation
import Testing

/// The table of models compared with the names and ids in Debian's libccid.
@Suite struct ModelTests {
    private static let information = "/etc/libccid_Info.plist"

    /// One string a line, in three arrays of one length.
    private static func strings(of key: String, in text: String) -> [String] {
        guard let start = text.range(of: "<key>\(key)</key>"),
            let end = text.range(of: "</array>", range: start.upperBound..<text.endIndex)
        else { return [] }
        return text[start.upperBound..<end.lowerBound].split(separator: "<string>").dropFirst()
            .compactMap { $0.split(separator: "</string>").first.map(String.init) }
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: information), "libccid is not installed"))
    func namesAndIDsOfTheDriverFindOneModel() throws {
        let text = try String(contentsOfFile: Self.information, encoding: .utf8)
        let vendors = Self.strings(of: "ifdVendorID", in: text)
        let products = Self.strings(of: "ifdProductID", in: text)
        let names = Self.strings(of: "ifdFriendlyName", in: text)
        try #require(vendors.count > 100 && vendors.count == products.count && vendors.count == names.count)
        var found: Set<String> = []
        for ((vendor, product), name) in zip(zip(vendors, products), names) where vendor.lowercased() == "0x072f" {
            let id = try #require(UInt32(product.dropFirst(2), radix: 16)) | 0x072F_0000
            guard let model = Model.of(name: "?", id: id), !model.sharesItsIDs else { continue }
            #expect(Model.of(name: "\(name) 00 00", id: nil) == model, "\(name)")
            found.insert(model.name)
        }
        // 1.5.2 does not know the ACR1552U.
        #expect(
            found.isSuperset(of: [
                "ACS ACR122U", "ACS ACR1251U", "ACS ACR1252U", "ACS ACR1252", "ACS ACR1255U-J1", "ACS ACR1281U",
            ]))
    }

    /// Names as pcscd makes them, from `opensc-tool --list-readers`.
    @Test(arguments: [
        ("ACS ACR1252 Dual Reader [ACR1252 Dual Reader PICC] 00 00", "ACS ACR1252U"),
        ("ACS ACR1252 Reader [ACR1252 Reader PICC] 00 00", "ACS ACR1252"),
        ("ACS ACR122U PICC Interface 00 00", "ACS ACR122U"),
    ])
    func aNameAloneTells(_ name: String, _ model: String) {
        #expect(Model.of(name: name, id: nil)?.name == model)
    }
}

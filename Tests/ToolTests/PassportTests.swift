import Foundation
import TestSupport
import Testing

/// `reader-probe passport` from outside.  The document is the specimen of ICAO 9303-4, appendix B, a published test value.
@Suite struct PassportTests {
    private static let zone = """
        P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<
        L898902C36UTO7408122F1204159ZE184226B<<<<<10

        """

    private let tool = Program.built("reader-probe")

    /// On the virtual passport, unless another card is named; without hardware and without a service.
    private func run(_ arguments: [String], input: String = zone) async throws -> Program.Outcome {
        try await Program.run(
            [tool, "passport"] + (arguments.contains("--card") ? [] : ["--card", "passport-bac"]) + arguments,
            environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"], input: input)
    }

    private static let known = """
           Reader       ACS ACR122U PICC Interface 00 00  (virtual)
           Access       BAC
           Data groups  DG1 DG2
           EF.COM       22 bytes
           DG1          93 bytes
           ! EF.SOD: the chip does not have the file

           Document     P, TD3, issued by UTO
           Number       L898902C3
           Surname      ERIKSSON
           Names        ANNA MARIA
           Nationality  UTO
           Born         1974-08-12
           Sex          F
           Expires      2012-04-15

        Read and not believed
           ! the signature over the data groups was not checked

        """

    @Test("the zone of the specimen is shown where that is asked for") func revealed() async throws {
        let outcome = try await run(["--reveal"])
        #expect(outcome.output == Self.known)
        #expect(outcome.status == 7)
    }

    @Test("nothing personal is printed otherwise", arguments: [[], ["--json"], ["--verbose"]])
    func masked(_ options: [String]) async throws {
        let outcome = try await run(options)
        #expect(outcome.status == 7)
        let words = ["ERIKSSON", "ANNA", "MARIA", "L898902C", "740812", "1974", "120415", "2012", "ZE184226B"]
        for text in [outcome.output, outcome.error] {
            for word in words {
                #expect(!text.contains(word))
                #expect(!text.contains(Array(word.utf8).map { String($0, radix: 16, uppercase: true) }.joined()))
            }
        }
    }

    @Test("the JSON object has each documented key") func json() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "passport-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let photo = folder.appending(path: "face")
        let outcome = try await run(["--json", "--reveal", "--photo", photo.path])
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
        let document = try #require(object)
        #expect(
            Set(document.keys) == [
                "reader", "access", "isDowngraded", "accessFailures", "dataGroups", "files", "zone", "portrait",
                "isBelieved", "doubts",
            ])
        let zone = try #require(document["zone"] as? [String: Any])
        #expect(zone["documentNumber"] as? String == "L898902C3" && zone["dateOfBirth"] as? String == "1974-08-12")
        #expect(zone["primaryIdentifier"] as? String == "ERIKSSON")
        #expect((zone["wrongCheckDigits"] as? [String]) == [])
        #expect(document["isBelieved"] as? Bool == false)
        let portrait = try #require(document["portrait"] as? [String: Any])
        #expect(portrait["width"] as? Int == 60 && portrait["height"] as? Int == 80)
        // ISO/IEC 10918-1, annex B: start and end of image.
        let bytes = [UInt8](try Data(contentsOf: photo))
        #expect(bytes.starts(with: [0xFF, 0xD8, 0xFF]) && bytes.suffix(2) == [0xFF, 0xD9])
        #expect(bytes.count == portrait["bytes"] as? Int)
        #expect(try await run(["--photo", photo.path]).status == 2, "the file is there already")
    }

    @Test("the zone comes from a file, and from standard input by name") func files() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "passport-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "zone")
        try Self.zone.write(to: file, atomically: true, encoding: .utf8)
        #expect(try await run(["--reveal", "--mrz-file", file.path], input: "").output == Self.known)
        #expect(try await run(["--reveal", "--mrz-file", "-"]).output == Self.known)
    }

    @Test(
        "what cannot open the chip is refused with the reason",
        arguments: [
            // Another document's zone: that of ICAO 9303-4, appendix B, with another number and its check digits.
            (
                "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C<3UTO6908061F9406236ZE184226B<<<<<14", [], 5,
                "the chip does not accept the key"
            ),
            ("123456", [], 5, "opens with the machine readable zone only"),
            ("", ["--can", "123456"], 5, "opens with the machine readable zone only"),
            ("", ["--can", "12E456"], 2, "digits"), ("", [], 2, "88 characters"),
            ("P<UTO", [], 2, "88 characters"),
            (zone.replacing("C36UTO", with: "C35UTO"), [], 2, "check digit of the document number"),
            ("", ["--can", "123456", "--mrz-file", "-"], 2, "two keys"),
            ("", ["--mrz-file", "/nonexistent"], 2, "cannot be read"),
            (zone, ["--card", "visa"], 5, "not that of a travel document"),
        ])
    func refused(_ input: String, _ options: [String], _ status: Int32, _ reason: String) async throws {
        let outcome = try await run(options, input: input)
        #expect(outcome.status == status && outcome.error.contains(reason), "\(outcome)")
        #expect(outcome.output.isEmpty)
    }

    @Test(
        "through pcscd, libccid and libusb it is the same",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func throughPCSC() async throws {
        let outcome = try await Program.run(
            [Program.built("virtual-reader"), "--card", "passport-bac", "--", tool, "passport", "--reveal"],
            input: Self.zone)
        #expect(outcome.status == 7, "\(outcome)")
        let lines = outcome.output.split(separator: "\n").dropFirst()
        #expect(lines == Self.known.split(separator: "\n").dropFirst())
    }
}

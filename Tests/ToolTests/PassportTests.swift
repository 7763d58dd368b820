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
           EF.SOD       1330 bytes

           Document     P, TD3, issued by UTO
           Number       L898902C3
           Surname      ERIKSSON
           Names        ANNA MARIA
           Nationality  UTO
           Born         1974-08-12
           Sex          F
           Expires      2012-04-15

           passed       content type
           passed       message digest
           passed       signer's certificate
           passed       signature
           passed       path to a country signing authority
           passed       validity of the signer
           passed       validity of the issuer
           passed       key usage of the signer
           passed       key usage of the issuer
           passed       country
           passed       document type
           passed       hash functions
           passed       DG1
           not checked  revocation: there is no revocation list of the issuer. Import one.
           not checked  DG2: the data group was not read

        Read and believed

        """

    /// The test authority of the virtual passports, in a file.
    private static let authority = Task {
        let outcome = try await Program.run([Program.built("virtual-reader"), "--passport-authority"])
        let file = FileManager.default.temporaryDirectory.appending(path: "authority-\(UUID().uuidString).pem")
        try outcome.output.write(to: file, atomically: true, encoding: .utf8)
        return file.path
    }

    @Test("the zone of the specimen is shown where that is asked for") func revealed() async throws {
        let outcome = try await run(["--reveal", "--trust", Self.authority.value])
        #expect(outcome.output == Self.known)
        #expect(outcome.status == 0)
    }

    @Test(
        "a document is not believed, for a stated reason",
        arguments: [
            ("passport-bac", false, "path to a country signing authority"), ("passport-altered", true, "DG1: failed"),
            ("passport-expired-signer", true, "validity of the signer: failed"),
            ("passport-cloned", true, "active authentication: the chip does not have the private key"),
        ])
    func notBelieved(_ card: String, _ hasAuthority: Bool, _ reason: String) async throws {
        let trust = hasAuthority ? ["--trust", try await Self.authority.value] : []
        let outcome = try await run(["--card", card] + trust)
        let last = outcome.output.components(separatedBy: "Read and not believed\n").last ?? ""
        #expect(outcome.status == 7, "\(outcome)")
        #expect(last.hasPrefix("   ! \(reason)") && last.split(separator: "\n").count == 1, "\(last)")
    }

    @Test(
        "each document opens with what is printed on it",
        arguments: [
            ("passport", zone, "PACE-ECDH-GM-AES-128, parameters 12"),
            ("passport", "123456", "PACE-ECDH-GM-AES-128, parameters 12"),
            ("identity-card", "123456", "PACE-ECDH-GM-AES-128, parameters 13"),
            // ICAO 9303-5, appendix B.
            (
                "identity-card",
                "I<UTOD231458907<<<<<<<<<<<<<<<\n7408122F1204159UTO<<<<<<<<<<<6\nERIKSSON<<ANNA<MARIA<<<<<<<<<<",
                "PACE-ECDH-GM-AES-128, parameters 13"
            ),
        ])
    func opens(_ card: String, _ key: String, _ access: String) async throws {
        let outcome = try await run(["--card", card, "--trust", Self.authority.value], input: key)
        #expect(outcome.status == 0 && outcome.output.contains("Access       \(access)\n"), "\(outcome)")
    }

    @Test("a photo that was read is signed, too") func photoIsSigned() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "photo-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        let outcome = try await run(["--photo", file, "--trust", Self.authority.value])
        #expect(outcome.status == 0 && outcome.output.contains("passed       DG2\n"), "\(outcome)")
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
                "checks", "isBelieved", "doubts",
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
        #expect(
            try await run(["--reveal", "--mrz-file", file.path, "--trust", Self.authority.value], input: "").output
                == Self.known)
        #expect(try await run(["--reveal", "--mrz-file", "-", "--trust", Self.authority.value]).output == Self.known)
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
            (zone, ["--trust", "/nonexistent"], 2, "cannot be read"),
            (zone, ["--trust", "/etc/hostname"], 2, "/etc/hostname: malformed"),
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
            [
                Program.built("virtual-reader"), "--card", "passport-bac", "--", tool, "passport", "--reveal",
                "--trust", Self.authority.value,
            ], input: Self.zone)
        #expect(outcome.status == 0, "\(outcome)")
        let lines = outcome.output.split(separator: "\n").dropFirst()
        #expect(lines == Self.known.split(separator: "\n").dropFirst())
    }
}

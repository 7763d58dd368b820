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
            environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent", "XDG_DATA_HOME": "/nonexistent"], input: input)
    }

    private static let known = """
           Reader       ACS ACR122U PICC Interface 00 00  (virtual)
           Access       BAC
           Data groups  DG1 DG2
           EF.SOD       1330 bytes
           DG1          93 bytes

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
           flagged      date of expiry: the document has expired

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
            ("passport-cloned", true, "chip authentication: failed: the chip does not have the private key"),
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

    @Test("further details are shown where they are asked for, and masked") func details() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let lines = Self.zone.split(separator: "\n")
        // Of ICAO 9303-10, appendix A.  // TEST
        try """
        card passport {
            type-a {
                uid  08 4A 5B 6C
                atqa 0008
                sak  20
                ats  05 78 77 80 02
            }
            mrz "\(lines[0])" "\(lines[1])"
            security-object signed
            data-group 11 {
                6B 23 5C 04 5F0E 5F11 5F0E 0D 53 4D 49 54 48 3C 3C 4A 4F 48 4E 3C 4A
                5F11 0A 41 4E 59 54 4F 57 4E 3C 4D 4E
            }
        }
        """.write(to: folder.appending(path: "details.card"), atomically: true, encoding: .utf8)
        let card = ["--card", folder.appending(path: "details.card").path]
        let shown = try await run(card + ["--details", "--reveal"]).output
        #expect(shown.contains("   full name                JOHN J SMITH\n"), "\(shown)")
        #expect(shown.contains("   place of birth           ANYTOWN, MN\n"))
        let masked = try await run(card + ["--details"]).output
        #expect(masked.contains("   full name                **** * *****\n"), "\(masked)")
        #expect(try await run(card + ["--reveal"]).output.contains("not checked  DG11: the data group was not read"))
    }

    @Test("an authority that was imported is believed until it is removed") func trust() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        func trust(_ arguments: String...) async throws -> Program.Outcome {
            try await Program.run([tool, "trust"] + arguments, environment: ["XDG_DATA_HOME": folder.path])
        }
        func read() async throws -> Int32? {
            try await Program.run(
                [tool, "passport", "--card", "passport-bac"],
                environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent", "XDG_DATA_HOME": folder.path], input: Self.zone
            ).status
        }
        let file = folder.appending(path: "utopia.pem").path
        try FileManager.default.copyItem(atPath: await Self.authority.value, toPath: file)
        #expect(try await trust("list").output == "No authorities are trusted.\n")
        #expect(try await read() == 7)
        #expect(try await trust("import", file).output == "utopia.pem: 1 authority\n")
        #expect(try await trust("list").output.hasSuffix("  utopia.pem: 1 authority  UT\n"))
        #expect(try await read() == 0)
        // The next edition of a file takes the place of the one before; one that is no list takes nobody's.
        #expect(try await trust("import", file).output == "utopia.pem: 1 authority\n")
        try Data("nothing".utf8).write(to: URL(filePath: file))
        #expect(try await trust("import", file).status == 2)
        #expect(try await read() == 0)
        #expect(try await trust("remove", "other.pem").status == 2)
        #expect(try await trust("remove", "utopia.pem").status == 0)
        #expect(try await read() == 7)
        try Data("{".utf8).write(to: folder.appending(path: "reader-probe/trust.json"))
        #expect(try await trust("list").error.contains("no trust list"))
    }

    @Test("a master list is taken for its signature, and one that was changed is refused")
    func masterList() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        // ICAO 9303-12, 8: version 0 and a set of certificates, here of one.
        func shell(_ script: String) async throws {
            let outcome = try await Program.run(["sh", "-ec", "cd '\(folder.path)'\n" + script])
            try #require(outcome.status == 0, "\(outcome)")
        }
        try await shell(
            """
            new='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
            openssl req -x509 $new -keyout a.key -out a.pem -days 9 -subj /C=UT/CN=a -addext keyUsage=critical,keyCertSign
            openssl req $new -keyout b.key -out b.csr -subj /C=UT/CN=b
            echo keyUsage=critical,digitalSignature >ext
            echo extendedKeyUsage=critical,2.23.136.1.1.3 >>ext
            echo authorityKeyIdentifier=keyid >>ext
            openssl x509 -req -in b.csr -CA a.pem -CAkey a.key -set_serial 2 -days 9 -extfile ext -out b.pem
            openssl x509 -in a.pem -outform DER -out a.der
            """)
        func object(_ tag: UInt8, _ value: Data) -> Data {
            Data([tag, 0x82, UInt8(value.count >> 8), UInt8(value.count & 0xFF)]) + value
        }
        let certificate = try Data(contentsOf: folder.appending(path: "a.der"))
        try object(0x30, Data([0x02, 0x01, 0x00]) + object(0x31, certificate))
            .write(to: folder.appending(path: "content"))
        try await shell(
            """
            openssl cms -sign -binary -nodetach -in content -econtent_type 2.23.136.1.1.2 -md sha256 -signer b.pem \
                -inkey b.key -certfile a.pem -outform DER -out list.ml
            """)
        func trust(_ arguments: String...) async throws -> Program.Outcome {
            try await Program.run([tool, "trust"] + arguments, environment: ["XDG_DATA_HOME": folder.path])
        }
        let file = folder.appending(path: "list.ml")
        let good = try await trust("import", file.path)
        #expect(good.status == 0 && good.output.hasPrefix("list.ml: 1 authority\n"), "\(good)")
        // Somebody else's list of the same name.
        try await shell(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout c.key -out c.pem -days 9 \\
                -subj /C=UT/CN=c -addext keyUsage=critical,keyCertSign
            openssl x509 -req -in b.csr -CA c.pem -CAkey c.key -set_serial 2 -days 9 -extfile ext -out d.pem
            openssl x509 -in c.pem -outform DER -out c.der
            cp list.ml genuine.ml
            """)
        let strange = try Data(contentsOf: folder.appending(path: "c.der"))
        try object(0x30, Data([0x02, 0x01, 0x00]) + object(0x31, strange)).write(to: folder.appending(path: "content"))
        try await shell(
            """
            openssl cms -sign -binary -nodetach -in content -econtent_type 2.23.136.1.1.2 -md sha256 -signer d.pem \\
                -inkey b.key -certfile c.pem -outform DER -out list.ml
            """)
        let forged = try await trust("import", file.path)
        #expect(forged.status == 2 && forged.output.contains("nobody who is trusted signed this edition"), "\(forged)")
        try await shell("cp genuine.ml list.ml; mkdir -p other; cp list.ml other")
        #expect(try await trust("import", file.path, folder.appending(path: "other").path).status == 2, "one name")
        #expect(try await trust("import", file.path).status == 0, "the same edition once more")
        var bytes = try Data(contentsOf: file)
        bytes[bytes.count - 1] ^= 0x01
        try bytes.write(to: file)
        let bad = try await trust("import", "--json", file.path)
        let object = try JSONSerialization.jsonObject(with: Data(bad.output.utf8)) as? [String: [[String: Any]]]
        let entry = try #require(object?["files"]?.first)
        #expect(bad.status == 2 && entry["isImported"] as? Bool == false)
        #expect((entry["remarks"] as? [String])?.contains { $0.contains("signature: failed") } == true, "\(entry)")
        #expect(try await trust("list").output.contains("list.ml: 1 authority"), "the edition before stays")
    }

    private static func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(path: "passport-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    @Test("a photo that was read is signed, too") func photoIsSigned() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "photo-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        let outcome = try await run(["--photo", file, "--trust", Self.authority.value])
        #expect(outcome.status == 0 && outcome.output.contains("passed       DG2\n"), "\(outcome)")
    }

    @Test(
        "the photo is shown on a terminal that shows pictures, and nowhere else",
        .enabled(if: Program.isInstalled("script"), "script (bsdutils) is not installed"))
    func showsPhoto() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let zone = folder.appending(path: "zone").path
        try Self.zone.write(toFile: zone, atomically: true, encoding: .utf8)
        let command = "'\(tool)' passport --card passport-bac --show-photo --mrz-file '\(zone)'"
        func run(_ terminal: String) async throws -> String {
            try await Program.run(
                ["env", "-u", "TMUX", "-u", "STY", "script", "-qec", command, "/dev/null"],
                environment: ["TERM": terminal, "XDG_DATA_HOME": "/nonexistent"]
            ).output
        }
        // The terminal graphics protocol of kitty: red, green and blue, 60 by 80.
        #expect(try await run("xterm-kitty").contains("\u{1B}_Ga=T,f=24,s=60,v=80"))
        let plain = try await run("dumb")
        #expect(!plain.contains("\u{1B}_G") && plain.contains("this terminal shows no pictures"))
    }

    @Test("nothing personal is printed otherwise", arguments: [[], ["--json"], ["--verbose"]])
    func masked(_ options: [String]) async throws {
        let outcome = try await run(options)
        #expect(outcome.status == 7)
        let words = ["ERIKSSON", "ANNA", "MARIA", "L898902C", "740812", "1974", "120415", "2012", "ZE184226B"]
        for text in [outcome.output, outcome.error] {
            // Secure messaging is printed as the card sent it, and any digits may come among those of a cryptogram.
            let readable = text.replacing(#/\b(?:87|8E):(?:01)?[0-9A-F]+/#, with: "")
            for word in words {
                #expect(!readable.contains(word))
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
                "checks", "isBelieved", "doubts", "details",
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
            (zone.replacing("L898902C3", with: "L8989O2C3"), [], 2, "Compare character 6 of line 2 with the document"),
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
            ], environment: ["XDG_DATA_HOME": "/nonexistent"], input: Self.zone)
        #expect(outcome.status == 0, "\(outcome)")
        let lines = outcome.output.split(separator: "\n").dropFirst()
        #expect(lines == Self.known.split(separator: "\n").dropFirst())
    }
}

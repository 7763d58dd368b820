import Foundation
import SmartCard
import SmartCardPCSC
import TestSupport
import Testing
import TravelDocument

/// Where the program is.
private enum VirtualSmartCard {
    static let modules = "/usr/lib/python3/site-packages/virtualsmartcard"
    static let cryptography = ".build/pycryptodome"

    static let obstacle: String? =
        !FileManager.default.fileExists(atPath: modules)
        ? "vsmartcard-vpicc is not installed"
        : !FileManager.default.fileExists(atPath: cryptography) ? "PyPI did not give pycryptodome" : nil
}

/// Basic Access Control with the passport of vsmartcard, `vicc --type ePass` of Debian, behind pcscd.
///
/// Its secure messaging is no judge: it computes the checksum of an answer without the data, and has no object 99.  The
/// handshake is.
@Suite(
    .pcscExclusive, .serialized, .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"),
    .enabled(if: VirtualSmartCard.obstacle == nil, "\(VirtualSmartCard.obstacle ?? "")"))
struct VirtualSmartCardTests {
    /// Starts it with a zone and vpcd's port.  It was written for Python 2: a prompt for the zone, text where bytes are
    /// needed, a picture that nobody wants.  What is put right here has no part in the handshake but the exclusive or of
    /// the two halves of a key.
    private static let program = """
        import builtins, sys, types
        answers = iter([sys.argv[1].encode(), "/nonexistent"])
        builtins.raw_input = lambda prompt: next(answers)
        def no_picture(path):
            raise IOError
        sys.modules["PIL"] = types.SimpleNamespace(Image=types.SimpleNamespace(open=no_picture))
        from virtualsmartcard import CryptoUtils, TLVutils
        def pack(objects, recalculate_length=False):
            number = lambda value: value.to_bytes((value.bit_length() + 7) // 8, "big")
            return b"".join(number(tag) + bytes([len(value)]) + value for tag, _, value in objects)
        TLVutils.pack = pack
        CryptoUtils.operation_on_string = lambda a, b, operation: bytes(map(operation, a, b))
        from virtualsmartcard import CardGenerator, VirtualSmartcard
        class Application(CardGenerator.DF):
            def __init__(self, **values):
                super().__init__(**dict(values, dfname=values["dfname"].encode("latin-1")))
        CardGenerator.DF = Application
        VirtualSmartcard.VirtualICC(None, "ePass", "127.0.0.1", int(sys.argv[2])).run()
        """

    /// The zone that its source has in a comment, with the number, the dates and the check digits of the worked example
    /// in ICAO 9303-11, appendix D.  // TEST
    private static let zone =
        "P<UTOERIKSSON<<ANNA<MARIX<<<<<<<<<<<<<<<<<<<" + "L898902C<3UTO6908061F9406236ZE184226B<<<<<14"

    /// Puts the passport into a reader of pcscd, and opens it with the key for `documentNumber`.
    private func open(_ documentNumber: String) async throws -> ChipAccess {
        let service = try await PrivatePCSCD()
        PCSCSocket.point(to: service.socket)
        let passport = try Program(
            ["/usr/bin/python3", "-c", Self.program, Self.zone, "\(service.port)"],
            environment: [
                "PYTHONPATH": "\(VirtualSmartCard.modules):\(VirtualSmartCard.cryptography)",
                "PYTHONDONTWRITEBYTECODE": "1",
            ])
        defer { passport.signal(SIGKILL) }
        let reader = PCSCReader(name: "Virtual PCD 00 00")
        _ = try await reader.waitForCard()
        let card = try await reader.connect(sharing: .exclusive)
        let key = try AccessKey(documentNumber: documentNumber, dateOfBirth: "690806", dateOfExpiry: "940623")
        return try await TravelDocumentChip(over: card, connection: card, longestAPDU: 261).open(with: key)
    }

    @Test("it agrees to the keys of the zone", .timeLimit(.minutes(2)))
    func opens() async throws {
        let access = try await open("L898902C")
        #expect(access.method == .basicAccessControl && access.failures.isEmpty)
    }

    @Test("it refuses the keys of another zone", .timeLimit(.minutes(2)))
    func refuses() async throws {
        let error = await #expect(throws: AccessError.self) { try await open("L898902D") }
        expectEqual(error?.failures.map(\.method), [.basicAccessControl])
        expectEqual(error?.failures.map(\.refusal), [.wrongKey(triesLeft: nil)])
    }
}

import SmartCard
import SmartCardPCSC
import TestSupport
import Testing

/// libpcsclite keeps one socket path for the process, so all tests that talk to a daemon take turns.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct PCSCTests {}

/// An ACR122U with an ISO-DEP card, as pcsc-tools' smartcard_list.txt has it (DESFire).
let desfireATR: [UInt8] = [0x3B, 0x81, 0x80, 0x01, 0x80, 0x80]
/// NTAG or Ultralight (PC/SC part 3 storage card).
let ultralightATR: [UInt8] = [
    0x3B, 0x8F, 0x80, 0x01, 0x80, 0x4F, 0x0C, 0xA0, 0x00, 0x00, 0x03, 0x06, 0x03, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00,
    0x68,
]
let acr122u = FakePCSCD.Reader("ACS ACR122U PICC Interface 00 00")

/// A fake pcscd at the path where libpcsclite looks.
func fakeService(
    _ readers: [FakePCSCD.Reader] = [], _ change: (inout FakePCSCD.Behaviour) -> Void = { _ in }
) throws -> FakePCSCD {
    var behaviour = FakePCSCD.Behaviour()
    change(&behaviour)
    let daemon = try FakePCSCD(path: PCSCSocket.folder + "/fake.comm", readers: readers, behaviour: behaviour)
    PCSCSocket.point(to: daemon.path)
    return daemon
}

/// The error that `body` throws, which must be a CardError.
func cardError(_ body: () async throws -> Void) async -> CardError? {
    do {
        try await body()
        Issue.record("no error")
    } catch let error as CardError {
        return error
    } catch {
        Issue.record("\(error) is no CardError")
    }
    return nil
}

/// Waits, a second at most, for something that happens elsewhere.
func eventually(_ condition: () -> Bool) async throws -> Bool {
    for _ in 0..<200 {
        if condition() { return true }
        try await Task.sleep(for: .milliseconds(5))
    }
    return condition()
}

extension PCSCTests {
    @Suite struct FakeService {
        @Test func listsReaders() async throws {
            let daemon = try fakeService([acr122u, FakePCSCD.Reader("Virtual PCD 00 01")])
            defer { daemon.stop() }
            #expect(
                try await PCSCService().readers().map(\.name) == [
                    "ACS ACR122U PICC Interface 00 00", "Virtual PCD 00 01",
                ])
            #expect(try await eventually { daemon.clientCount == 0 }, "the context is released")
        }

        @Test func noReadersIsNoError() async throws {
            let daemon = try fakeService()
            defer { daemon.stop() }
            #expect(try await PCSCService().readers() == [])
        }

        // MARK: No service

        @Test func noSocket() async throws {
            PCSCSocket.pointNowhere()
            let error = await cardError { _ = try await PCSCService().readers() }
            #expect(error?.kind == .noService)
            #expect(
                error?.description == "the smart card service does not answer (SCARD_E_NO_SERVICE 0x8010001D)")
        }

        @Test func socketWithoutService() async throws {
            let daemon = try fakeService()
            daemon.stop()
            // A crash leaves the socket file behind.
            let left = try FakePCSCD(path: daemon.path)
            PCSCSocket.point(to: left.path)
            left.stopKeepingSocket()
            #expect(await cardError { _ = try await PCSCService().readers() }?.kind == .noService)
        }

        /// How polkit's refusal looks over the socket, which pcscd then closes (pcsc-lite 1.9.9, winscard_svc.c
        /// ContextThread).
        @Test(arguments: [
            (FakePCSCD.Welcome.reset, "SCARD_W_SECURITY_VIOLATION 0x8010006A"),
            (.hangUp, "SCARD_F_COMM_ERROR 0x80100013"),
        ])
        func deniedByPolkit(_ welcome: FakePCSCD.Welcome, _ status: String) async throws {
            let daemon = try fakeService { $0.welcome = welcome }
            defer { daemon.stop() }
            let error = await cardError { _ = try await PCSCService().readers() }
            #expect(error?.kind == .permissionDenied)
            #expect(error?.cause.map { "\($0)" } == status)
            #expect(error?.hint.contains("polkit") == true)
        }

        @Test func versionMismatch() async throws {
            let daemon = try fakeService { $0.version = 0x8010_001E }
            defer { daemon.stop() }
            let error = await cardError { _ = try await PCSCService().readers() }
            #expect(error?.kind == .versionMismatch)
            #expect(error?.cause as? PCSCStatus == .serviceStopped)
        }
    }
}

import CV4L2
import CameraTestSupport
import Cameras
import Foundation
import TestSupport
import Testing
import Waiting

@testable import KioskBridge

@MainActor @Suite struct BridgeHostTests {
    @Test("A page that connects is told the state of the kiosk, and a second one is not admitted")
    func connects() async throws {
        let host = BridgeHost(hostVersion: "1.2.3")
        let page = try #require(Page(host))
        try await page.wait("host.ready") { !page.events("host.ready").isEmpty }
        let ready = try #require(page.events("host.ready").first)
        #expect(ready["hostVersion"] as? String == "1.2.3")
        #expect(ready["protocolVersion"] as? Int == 1)
        #expect(ready["sequence"] as? Int == 1)
        let snapshot = try #require(ready["snapshot"] as? [String: Any])
        #expect(snapshot["inService"] as? Bool == true)
        #expect(Page(host) == nil)
        page.leave()
        #expect(!host.isConnected)
        #expect(Page(host) != nil)
    }

    @Test("The host proves that it issued the token, as OpenSSL computes the proof")
    func proof() async throws {
        let host = BridgeHost(hostVersion: "1")
        let page = try #require(Page(host, token: "00112233445566778899aabbccddeeff"))
        let answer = try await page.request("bridge.hello", #"{"nonce":"0f1e2d3c4b5a69788796a5b4c3d2e1f0"}"#)
        // printf 0f1e2d3c4b5a69788796a5b4c3d2e1f0 | openssl sha256 -hmac 00112233445566778899aabbccddeeff
        let proof = "02ed18fb77acafa0a69d34a437d321098e27451aa2a83e364b0cd29da1314e32"
        #expect(answer.data["proof"] as? String == proof)
        #expect(try await page.request("bridge.hello", #"{"nonce":"short"}"#).code == "INVALID_REQUEST")
        #expect(try await page.request("bridge.hello").code == "INVALID_REQUEST")
    }

    @Test("C6 A request that nobody knows is unsupported, with a delegate or without")
    func unknown() async throws {
        let host = BridgeHost(hostVersion: "1")
        let page = try #require(Page(host))
        for delegate in [nil, Observer()] {
            host.delegate = delegate
            let answer = try await page.request("door.open")
            #expect(answer.status == "unsupported")
            #expect(answer.code == "UNSUPPORTED_ACTION")
            #expect(answer.isRecoverable == false)
            #expect(host.lastError?.code == "UNSUPPORTED_ACTION")
            withExtendedLifetime(delegate) {}
        }
    }

    private final class Observer: BridgeHostDelegate {}

    @Test(
        "C5 An answer that the application forgets becomes an internal error, and a second one is dropped",
        .simulatedTime)
    func forgotten() async throws {
        let host = BridgeHost(hostVersion: "1")
        host.registerCustomCapability("forgetful", version: "1.0") { _, _ in }
        host.registerCustomCapability("talkative", version: "1.0") { _, responder in
            responder.respond(status: .success, data: ["first": true])
            responder.respond(status: .success, data: ["first": false])
        }
        // The responder of an answered request is released while the page uses its name for another one.
        var released: [BridgeResponder] = []
        host.registerCustomCapability("lasting", version: "1.0") { _, responder in
            released.append(responder)
            responder.respond(status: .success)
        }
        host.registerCustomCapability("slow", version: "1.0") { _, responder in
            released = []
            try? await Time.sleep(for: .seconds(60))
            responder.respond(status: .success, data: ["own": true])
        }
        let page = try #require(Page(host))
        for action in ["lasting", "slow"] {
            await page.send(
                #"{"v":1,"type":"request","correlationId":"same","payload":{"action":"\#(action)"}}"#)
            try await page.wait("answer") { page.responses(to: "same").count == (action == "slow" ? 2 : 1) }
        }
        #expect(page.responses(to: "same").last?.data["own"] as? Bool == true)
        #expect(try await page.request("forgetful").code == "INTERNAL_ERROR")
        let id = await page.begin("talkative")
        _ = try await page.request("capability.query")
        #expect(page.responses(to: id).map { $0.data["first"] as? Bool } == [true])
        #expect(host.pendingRequests.isEmpty)
    }

    @Test("C7 A query tells handler, switch, permission and the application's own, and each change is told")
    func query() async throws {
        var configuration = BridgeHost.Configuration(hostVersion: "1")
        configuration.capabilities = ["nfc.read": CapabilityState(isSupported: false, reason: "configured")]
        let host = BridgeHost(configuration: configuration)
        let custom = host.registerCustomCapability("nfc.read", version: "2.0") { _, _ in }
        let own = host.registerCustomCapability("own", version: "2.0") { _, _ in }
        let page = try #require(Page(host))
        func entry(_ id: String) async throws -> [String: Any] {
            let all = try await page.request("capability.query").data["capabilities"] as? [String: Any]
            return try #require(all?[id] as? [String: Any])
        }
        #expect(try await entry("camera.document")["supported"] as? Bool == false)
        host.documentCapture.handler = { _ in .cancelled(reason: "") }
        #expect(try await entry("camera.document")["supported"] as? Bool == true)
        host.documentCapture.permissionState = .denied
        #expect(try await entry("camera.document")["permissionState"] as? String == "denied")
        host.documentCapture.isEnabled = false
        #expect(try await entry("camera.document")["supported"] as? Bool == false)
        // Configuration takes precedence over custom capabilities.
        #expect(try await entry("nfc.read")["reason"] as? String == "configured")
        custom.state.isSupported = false
        #expect(try await entry("own")["version"] as? String == "2.0")
        own.state.permissionState = .prompt
        #expect(try await entry("own")["permissionState"] as? String == "prompt")
        // Three of the slot, one of the custom capability.  That of nfc.read was not to be seen.
        try await page.wait("events") { page.events("host.capabilitiesChanged").count == 4 }
        let told = page.events("host.capabilitiesChanged").last?["capabilities"] as? [String: Any]
        #expect((told?["own"] as? [String: Any])?["permissionState"] as? String == "prompt")
        // A slot with a handler takes precedence over the configuration.
        var other = BridgeHost.Configuration(hostVersion: "1")
        other.capabilities = ["camera.document": CapabilityState(isSupported: false)]
        let second = BridgeHost(configuration: other)
        #expect(second.capabilities["camera.document"]?.isSupported == false)
        second.documentCapture.handler = { _ in .cancelled(reason: "") }
        #expect(second.capabilities["camera.document"]?.isSupported == true)
    }

    @Test("C8 A slot refuses a second request, encodes the result, and is free again")
    func slot() async throws {
        let host = BridgeHost(hostVersion: "1")
        host.documentCapture.handler = { [weak host] _ in
            await host?.documentCapture.awaitCompletion() ?? .cancelled(reason: "gone")
        }
        let page = try #require(Page(host))
        // Without a request it does nothing.
        host.documentCapture.complete(.cancelled(reason: "nobody asked"))
        let first = await page.begin("camera.document.capture", #"{"documentType":"passport","side":"front"}"#)
        try await page.wait("active request") { host.documentCapture.activeRequest != nil }
        #expect(host.documentCapture.activeRequest?.payload.data?["side"] == "front")
        let second = try await page.request("camera.document.capture")
        #expect(second.code == "BUSY" && second.isRecoverable == true)
        host.documentCapture.complete(
            .document(
                DocumentCaptureResult(
                    imageData: Data([0xFF, 0xD8, 0xFF]), width: 640, height: 480, quality: ["sharpness": 0.5])))
        host.documentCapture.complete(.cancelled(reason: "too late"))
        try await page.wait("picture") { !page.responses(to: first).isEmpty }
        let picture = try #require(page.responses(to: first).first)
        #expect(picture.status == "success")
        #expect(picture.data["imageData"] as? String == "/9j/")
        #expect(picture.data["width"] as? Int == 640 && picture.data["mimeType"] as? String == "image/jpeg")
        #expect((picture.data["quality"] as? [String: Any])?["sharpness"] as? Double == 0.5)
        #expect(host.documentCapture.activeRequest == nil)

        host.documentCapture.handler = { _ in .failure(.init(.timeout, "no document")) }
        #expect(try await page.request("camera.document.capture").code == "TIMEOUT")
        host.documentCapture.handler = { _ in .cancelled(reason: "by the customer") }
        #expect(try await page.request("camera.document.capture").status == "cancelled")
        host.documentCapture.permissionState = .denied
        #expect(try await page.request("camera.document.capture").code == "PERMISSION_DENIED")
        host.documentCapture.isEnabled = false
        let refused = try await page.request("camera.document.capture")
        #expect(refused.status == "unsupported" && refused.code == "UNSUPPORTED")
        host.selfieCapture.handler = { _ in
            .selfie(SelfieCaptureResult(previewImageData: Data([1]), width: 1, height: 1, encryptedBlob: Data([2])))
        }
        let selfie = try await page.request("camera.selfie.capture")
        #expect(selfie.data["encryptedBlob"] as? String == "Ag==" && selfie.data["unencryptedBlob"] == nil)
    }

    @Test("C8 A page that goes away cancels its captures, and the next page can capture")
    func slotAfterPage() async throws {
        let host = BridgeHost(hostVersion: "1")
        var results: [CaptureResult] = []
        host.documentCapture.handler = { [weak host] _ in
            let result = await host?.documentCapture.awaitCompletion() ?? .cancelled(reason: "gone")
            results.append(result)
            return result
        }
        let page = try #require(Page(host))
        _ = await page.begin("camera.document.capture")
        try await page.wait("active request") { host.documentCapture.activeRequest != nil }
        page.leave()
        try await page.wait("end of the capture") { host.documentCapture.activeRequest == nil }
        #expect(results == [.cancelled(reason: "the page is gone")])
        let next = try #require(Page(host))
        let id = await next.begin("camera.document.capture")
        try await next.wait("active request") { host.documentCapture.activeRequest != nil }
        host.documentCapture.complete(.cancelled(reason: "by the customer"))
        try await next.wait("answer") { next.responses(to: id).count == 1 }
        #expect(next.events("host.ready").count == 1)
    }

    @Test("C10 Sleep and wake-up are told once, and the reader is prepared in between")
    func life() async throws {
        let host = BridgeHost(hostVersion: "1")
        let page = try #require(Page(host))
        var preparations = 0
        host.onForeground { preparations += 1 }
        await host.enterForeground()
        #expect(preparations == 0)
        var departures = 0
        host.onBackground { departures += 1 }
        await host.enterBackground()
        await host.enterBackground()
        #expect(departures == 1)
        await host.enterForeground()
        host.setInService(false)
        host.setInService(false)
        try await page.wait("events") { page.events("host.outOfService").count == 1 }
        #expect(page.events("host.background").count == 1 && page.events("host.foreground").count == 1)
        #expect(preparations == 1)
        #expect(
            page.texts.compactMap { ($0["payload"] as? [String: Any])?["action"] as? String }.suffix(3)
                == ["host.background", "host.foreground", "host.outOfService"])
        page.leave()
        let next = try #require(Page(host))
        try await next.wait("host.ready") { !next.events("host.ready").isEmpty }
        #expect((next.events("host.ready").first?["snapshot"] as? [String: Any])?["inService"] as? Bool == false)
    }

    @Test("C10 Events of the page reach delegate and stream, in order")
    func journey() async throws {
        let host = BridgeHost(hostVersion: "1")
        let delegate = Collector()
        host.delegate = delegate
        let stream = host.messages
        let page = try #require(Page(host))
        for action in ["journey.started", "journey.complete"] {
            await page.send(
                #"{"v":1,"type":"event","correlationId":"e","payload":{"action":"\#(action)","data":{"status":"success"}}}"#
            )
        }
        var received: [String] = []
        for await message in stream {
            received.append(message.payload.action)
            if received.count == 2 { break }
        }
        #expect(received == ["journey.started", "journey.complete"])
        #expect(delegate.actions == received)
    }

    private final class Collector: BridgeHostDelegate {
        var actions: [String] = []
        func bridgeHost(_ host: BridgeHost, didReceive message: BridgeMessage) {
            actions.append(message.payload.action)
        }
    }

    @Test("C12 What is kept of messages is bounded and masked")
    func kept() async throws {
        var configuration = BridgeHost.Configuration(hostVersion: "1")
        configuration.limits.messagesPerSecond = 10_000
        let host = BridgeHost(configuration: configuration)
        host.registerCustomCapability("wait", version: "1.0") { _, _ in
            try? await waitUntilCanceled()
        }
        let page = try #require(Page(host))
        for _ in 0..<300 { _ = try await page.request("unknown", #"{"mrz":"L898902C3","n":[12,{"b":true}]}"#) }
        #expect(host.receivedMessages.count == 100)
        #expect(!"\(host.receivedMessages)".contains("L898902C3"))
        #expect(host.receivedMessages.last?.payload.data == ["mrz": "•••", "n": ["•••", ["b": true]]])
        #expect(!"\(try #require(host.receivedMessages.last))".contains("mrz"))
        _ = await page.begin("wait", #"{"can":"123456"}"#)
        #expect(host.pendingRequests.count == 1)
        #expect(host.pendingRequests.first?.payload.data == ["can": "•••"])
        page.leave()
        #expect(host.pendingRequests.isEmpty)
    }

    @Test("C15 What a journey lacks is named before it starts")
    func missing() {
        let journey = JourneyConfig(
            url: URL(filePath: "/"), requiredCapabilities: ["nfc.read", "camera.document", "x"], hostVersion: "1")
        let nothing = DeviceCapabilities(
            nfcAvailable: false, cameraResult: .init(cameras: [], inUse: [], notPermitted: []))
        let all = DeviceCapabilities(
            nfcAvailable: true, cameraResult: .init(cameras: [], inUse: ["/dev/video0"], notPermitted: []))
        #expect(journey.missingCapabilities(on: nothing) == ["nfc.read", "camera.document", "x"])
        #expect(journey.missingCapabilities(on: all) == ["x"])
        #expect(JourneyConfig.warning(about: []) == nil)
        #expect(
            JourneyConfig.warning(about: ["nfc.read"])
                == "This journey requires nfc.read which is not available on this device. The journey may not complete successfully."
        )
        let host = BridgeHost(hostVersion: "1")
        #expect(journey.missingCapabilities(of: host) == ["nfc.read", "camera.document", "x"])
        host.registerCustomCapability("x", version: "1.0") { _, _ in }
        host.documentCapture.handler = { _ in .cancelled(reason: "") }
        #expect(journey.missingCapabilities(of: host) == ["nfc.read"])
    }

    @Test("An idle connection and a host that is released keep nothing alive")
    func released() async throws {
        weak var host: BridgeHost?
        weak var connection: BridgeConnection?
        do {
            let kept = BridgeHost(hostVersion: "1")
            host = kept
            let page = try #require(Page(kept))
            connection = page.connection
            _ = try await page.request("capability.query")
            page.leave()
        }
        try await wait(for: "their end") { host == nil && connection == nil }
        let orphan = try #require(Page(BridgeHost(hostVersion: "1")))
        await orphan.send("{}")
        try await orphan.wait("end") { orphan.closed == 1001 }
    }

    @Test("The camera's slot gives a picture with its quality, and says why there is none")
    func camera() async throws {
        let picture = [UInt8](repeating: 0x80, count: 64 * 48 * 2)
        for (driver, code) in [
            (CameraDriver { _ in .init(bytes: picture) }, nil), (CameraDriver(openError: EACCES), "PERMISSION_DENIED"),
            (CameraDriver(answer: { request, _ in request == CV4L2_REQBUFS ? EBUSY : nil }), "BUSY"),
            (nil, "UNSUPPORTED"),
        ] as [(CameraDriver?, String?)] {
            let host = BridgeHost(hostVersion: "1")
            host.useDocumentCamera(CameraCapture(driver.map { CameraMachine($0) } ?? CameraMachine([:])))
            let page = try #require(Page(host))
            try await page.wait("look") { host.documentCapture.isEnabled == (driver != nil) }
            let answer = try await page.request("camera.document.capture")
            #expect(answer.code == code, "\(answer)")
            guard code == nil else { continue }
            let jpeg = (answer.data["imageData"] as? String).flatMap { Data(base64Encoded: $0) }
            #expect(jpeg?.prefix(2) == Data([0xFF, 0xD8]) && answer.data["width"] as? Int == 64)
            #expect(
                Set((answer.data["quality"] as? [String: Double] ?? [:]).keys) == ["sharpness", "glare", "coverage"])
        }
    }

    @Test("After a thousand customers the host keeps nothing of them but its last messages", .timeLimit(.minutes(5)))
    func customers() async throws {
        let host = BridgeHost(hostVersion: "1")
        host.documentCapture.handler = { _ in
            .document(DocumentCaptureResult(imageData: Data(count: 100), width: 1, height: 1))
        }
        var connections: [Weak] = []
        for _ in 0..<1_000 {
            let page = try #require(Page(host))
            connections.append(Weak(value: page.connection))
            _ = try await page.request("camera.document.capture")
            await page.send(#"{"v":1,"type":"event","correlationId":"e","payload":{"action":"journey.complete"}}"#)
            page.leave()
        }
        try await wait(for: "the end of the connections") { connections.allSatisfy { $0.value == nil } }
        #expect(host.receivedMessages.count == 100 && host.pendingRequests.isEmpty)
    }

    private struct Weak { weak var value: BridgeConnection? }
}

import Foundation
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing
import TravelDocument

@testable import KioskBridge

@MainActor @Suite struct NFCReadTests {
    private final class Kiosk {
        let device = SoftwareACR122U()
        let host: BridgeHost
        let page: Page

        @MainActor init(limit: Duration = .seconds(30)) throws {
            let host = BridgeHost(hostVersion: "1")
            host.register(
                NFCReadCapability(
                    reader: .reader(VirtualReader(device)), trust: { TrustList() }, limit: limit))
            self.host = host
            page = try #require(Page(host))
        }

        @MainActor func waitForReader() async throws {
            try await page.wait("reader") { host.capabilities["nfc.read"]?.isSupported == true }
        }
    }

    @Test("C9 A passport is read with its portrait, and what is to be believed")
    func passport() async throws {
        let kiosk = try Kiosk()
        try await kiosk.waitForReader()
        kiosk.device.insert(try #require(VirtualCards.named("passport")))
        let answer = try await kiosk.page.request("nfc.read", #"{"type":"document","can":"123456","dataGroups":[1,2]}"#)
        #expect(answer.status == "success", "\(answer)")
        #expect(answer.data["chipRead"] as? Bool == true)
        #expect((answer.data["dataGroups"] as? [String])?.prefix(2) == ["DG1", "DG2"])
        let document = try #require(answer.data["document"] as? [String: Any])
        #expect(document["surname"] as? String == "ERIKSSON", "\(document)")
        let portrait = try #require(answer.data["portrait"] as? [String: Any])
        let jpeg = try #require((portrait["imageData"] as? String).flatMap { Data(base64Encoded: $0) })
        #expect(jpeg.prefix(3) == Data([0xFF, 0xD8, 0xFF]) && jpeg.suffix(2) == Data([0xFF, 0xD9]))
        let security = try #require(answer.data["security"] as? [String: Any])
        #expect(security["access"] as? String == "PACE")
        #expect(security["authentic"] as? String != "yes")
        // The specimen's is of 2012.
        #expect(security["expired"] as? Bool == true)
        let progress = kiosk.page.events("nfc.progress")
        #expect(progress.first?["step"] as? String == "present" && progress.last?["step"] as? String == "checking")
        #expect(progress.count < 60 && progress.count > 5, "\(progress.count)")
        let fractions = progress.compactMap { $0["fraction"] as? Double }
        #expect(fractions == fractions.sorted())
    }

    @Test("C9 Nobody puts a document there: TIMEOUT, and the next one is read")
    func timeout() async throws {
        let kiosk = try Kiosk(limit: .milliseconds(200))
        try await kiosk.waitForReader()
        let answer = try await kiosk.page.request("nfc.read", #"{"can":"123456"}"#)
        #expect(answer.code == "TIMEOUT" && answer.isRecoverable == true)
        kiosk.device.insert(try #require(VirtualCards.named("passport")))
        #expect(try await kiosk.page.request("nfc.read", #"{"can":"123456","timeout":20}"#).status == "success")
    }

    @Test("C8, C9 A second reading is BUSY; a canceled one is CANCELLED; a page that goes away ends its reading")
    func cancelled() async throws {
        let kiosk = try Kiosk()
        try await kiosk.waitForReader()
        let first = await kiosk.page.begin("nfc.read", #"{"can":"123456"}"#)
        try await kiosk.page.wait("progress") { !kiosk.page.events("nfc.progress").isEmpty }
        #expect(try await kiosk.page.request("nfc.read", #"{"can":"123456"}"#).code == "BUSY")
        #expect(try await kiosk.page.request("nfc.cancel").status == "success")
        try await kiosk.page.wait("answer") { kiosk.page.responses(to: first).first?.status == "cancelled" }

        _ = await kiosk.page.begin("nfc.read", #"{"can":"123456"}"#)
        try await kiosk.page.wait("progress") { kiosk.page.events("nfc.progress").count == 2 }
        kiosk.page.leave()
        let next = try #require(Page(kiosk.host))
        kiosk.device.insert(try #require(VirtualCards.named("passport")))
        var answer = try await next.request("nfc.read", #"{"can":"123456"}"#)
        while answer.code == "BUSY" { answer = try await next.request("nfc.read", #"{"can":"123456"}"#) }
        #expect(answer.status == "success")
    }

    @Test("C9 A wrong key, a payment card, and a document that is taken away are told apart")
    func failures() async throws {
        let kiosk = try Kiosk()
        try await kiosk.waitForReader()
        kiosk.device.insert(try #require(VirtualCards.named("passport")))
        let wrong = try await kiosk.page.request("nfc.read", #"{"can":"654321"}"#)
        #expect(wrong.code == "ACCESS_DENIED" && wrong.isRecoverable == true)
        #expect(!"\(wrong)".contains("654321"))
        kiosk.device.remove()
        kiosk.device.insert(try #require(VirtualCards.named("visa")))
        let payment = try await kiosk.page.request("nfc.read", #"{"can":"123456"}"#)
        #expect(["NOT_A_DOCUMENT", "ACCESS_DENIED"].contains(payment.code), "\(payment)")
    }

    @Test(
        "C9 A tag is read with its records, and a payment card is none",
        arguments: [("ndef-type4", true), ("ntag213", true), ("visa", false)])
    func tag(_ name: String, hasRecords: Bool) async throws {
        let kiosk = try Kiosk()
        try await kiosk.waitForReader()
        kiosk.device.insert(try #require(VirtualCards.named(name)))
        let answer = try await kiosk.page.request("nfc.read", #"{"type":"ndef"}"#)
        guard hasRecords else {
            #expect(answer.code == "NOT_A_DOCUMENT", "\(answer)")
            return
        }
        let records = try #require(answer.data["records"] as? [[String: Any]], "\(answer)")
        #expect(records.first?["type"] as? String == "uri" && records.first?["uri"] as? String != nil, "\(records)")
    }

    @Test("C9 A reader that is unplugged is told, and a request is unsupported")
    func unplugged() async throws {
        let kiosk = try Kiosk()
        try await kiosk.waitForReader()
        let id = await kiosk.page.begin("nfc.read", #"{"can":"123456"}"#)
        try await kiosk.page.wait("progress") { !kiosk.page.events("nfc.progress").isEmpty }
        kiosk.device.unplug()
        try await kiosk.page.wait("answer") { !kiosk.page.responses(to: id).isEmpty }
        #expect(kiosk.page.responses(to: id).first?.code == "READER_DISCONNECTED")
        try await kiosk.page.wait("change") { !kiosk.page.events("host.capabilitiesChanged").isEmpty }
        #expect(kiosk.host.capabilities["nfc.read"]?.isSupported == false)
    }

    @Test(
        "What a page may not ask is refused without its contents",
        arguments: [
            "{}", #"{"mrz":"L898902C3"}"#, #"{"can":"12a456"}"#, #"{"can":123456}"#,
            #"{"can":"123456","dataGroups":[0]}"#,
            #"{"can":"123456","dataGroups":[17]}"#, #"{"can":"123456","dataGroups":1}"#,
            #"{"can":"123456","timeout":0}"#, #"{"can":"123456","timeout":121}"#,
            #"{"type":"apdu"}"#, #"{"type":1}"#,
            #"{"documentNumber":"L898902C","dateOfBirth":"690806","dateOfExpiry":"9406"}"#,
        ])
    func invalid(_ data: String) async throws {
        let kiosk = try Kiosk()
        let answer = try await kiosk.page.request("nfc.read", data)
        #expect(answer.code == "INVALID_REQUEST", "\(answer)")
        #expect(!"\(answer)".contains("L8989"))
    }
}

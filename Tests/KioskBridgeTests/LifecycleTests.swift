import Foundation
import KioskKit
import KioskTestSupport
import TestSupport
import Testing

@testable import KioskBridge

/// What logind tells of sessions.
extension LogindBus {
    fileprivate func addSession(_ id: String, seat: String) async throws {
        try await call("", "org.freedesktop.DBus.Mock.AddSession", id, "seat0", "1000", "kiosk", "true")
        guard seat.isEmpty else { return }
        try await call(
            "/session/\(id)", "org.freedesktop.DBus.Properties.Set", "org.freedesktop.login1.Session", "Seat",
            "<('', objectpath '/')>")
    }

    fileprivate func session(_ id: String, _ method: String, _ arguments: String...) async throws {
        let session = "org.freedesktop.login1.Session.\(method)"
        if let argument = arguments.first {
            try await call("/session/\(id)", session, argument)
        } else {
            try await call("/session/\(id)", session)
        }
    }

    fileprivate func remove(_ id: String) async throws {
        try await call(
            "", "org.freedesktop.DBus.Mock.EmitSignal", "org.freedesktop.login1.Manager", "SessionRemoved", "so",
            "[<'\(id)'>, <objectpath '/org/freedesktop/login1/session/\(id)'>]")
    }
}

/// A kiosk whose machine sleeps or whose screen is locked, as logind's stand-in tells it.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: LogindBus.obstacle == nil, "\(LogindBus.obstacle ?? "")"))
@MainActor struct ScreenLockTests {
    /// The states as they come.
    @MainActor private final class Watched {
        private(set) var states: [Bool] = []

        init(_ logind: LogindBus) {
            let states = ScreenLockWatch.states(on: logind.address)
            Task { [weak self] in for await state in states { self?.states.append(state) } }
        }

        func wait(_ expected: [Bool], _ location: SourceLocation = #_sourceLocation) async throws {
            try await TestSupport.wait(for: "state") { states.count >= expected.count }
            #expect(states == expected, sourceLocation: location)
        }
    }

    @Test("Lock and Unlock, LockedHint, and the end of a session") func signals() async throws {
        let logind = try await LogindBus()
        try await logind.addSession("1", seat: "seat0")
        try await logind.addSession("2", seat: "")
        let watched = Watched(logind)
        try await watched.wait([false])
        // A session of SSH is nobody in front of the kiosk.
        try await logind.session("2", "Lock")
        try await logind.session("1", "Lock")
        try await watched.wait([false, true])
        // The locker says the same.
        try await logind.session("1", "SetLockedHint", "true")
        try await logind.session("1", "Unlock")
        try await watched.wait([false, true, false])
        // One that says nothing but the property; other properties change nothing.
        try await logind.session("1", "SetLockedHint", "false")
        try await logind.session("1", "SetLockedHint", "true")
        try await watched.wait([false, true, false, true])
        try await logind.call(
            "/session/1", "org.freedesktop.DBus.Mock.UpdateProperties", "org.freedesktop.login1.Session",
            "{'IdleHint': <true>, 'Active': <false>}")
        try await logind.session("1", "SetLockedHint", "false")
        try await watched.wait([false, true, false, true, false])
        // A session that came later, and is gone while it is locked.
        try await logind.addSession("3", seat: "seat0")
        try await logind.session("3", "Lock")
        try await watched.wait([false, true, false, true, false, true])
        try await logind.remove("3")
        try await watched.wait([false, true, false, true, false, true, false])
    }

    @Test("a screen that was locked before is known from the beginning") func before() async throws {
        let logind = try await LogindBus()
        try await logind.addSession("1", seat: "seat0")
        try await logind.session("1", "SetLockedHint", "true")
        try await Watched(logind).wait([true])
    }

    @Test("locked is the background; a machine that wakes up locked stays there") func lifecycle() async throws {
        let logind = try await LogindBus()
        try await logind.addSession("1", seat: "seat0")
        let host = BridgeHost(hostVersion: "1.0.0")
        var calls: [String] = []
        host.onBackground { calls.append("leave") }
        host.onForeground { calls.append("prepare") }
        host.followSleep(bus: logind.address)
        host.followScreenLock(bus: logind.address)
        let page = try #require(Page(host))
        func events() -> [String] {
            page.texts.compactMap { ($0["payload"] as? [String: Any])?["action"] as? String }.filter {
                $0 != "host.ready"
            }
        }
        // Both watches have begun when a lock and a sleep are seen.
        try await wait(for: "lock") {
            try await logind.session("1", "Lock")
            return host.absences.contains(.screenLock)
        }
        try await wait(for: "sleep") {
            try await logind.tell(isAsleep: true)
            return host.absences.contains(.sleep)
        }
        try await page.wait("background") { events() == ["host.background"] }
        try await logind.tell(isAsleep: false)
        try await page.wait("waking") { host.absences == [.screenLock] }
        #expect(host.isInBackground && calls == ["leave"])
        await host.enterForeground()
        #expect(events() == ["host.background"], "the application does not unlock the screen")
        try await logind.session("1", "Unlock")
        try await page.wait("foreground") { events() == ["host.background", "host.foreground"] }
        #expect(calls == ["leave", "prepare"] && !host.isInBackground)
    }

    @Test("no bus: nothing is told, and the kiosk is in use") func noBus() async throws {
        var states: [Bool] = []
        for await state in ScreenLockWatch.states(on: "unix:path=/tmp/no-such-bus") { states.append(state) }
        #expect(states == [])
    }
}

/// The language of the kiosk.
@MainActor struct LocaleTests {
    @Test("the page is told the language when it connects, and when it changes") func told() async throws {
        let host = BridgeHost(hostVersion: "1.0.0")
        let first = try #require(Page(host))
        host.setLocale(Locale(identifier: "de_AT"))
        host.setLocale(Locale(identifier: "de_AT"))
        try await first.wait("host.locale") { !first.events("host.locale").isEmpty }
        first.leave()
        let second = try #require(Page(host))
        try await second.wait("host.locale") { !second.events("host.locale").isEmpty }
        host.setLocale(Locale(identifier: "fr"))
        try await second.wait("host.locale") { second.events("host.locale").count == 2 }
        #expect(first.events("host.locale").map { $0["locale"] as? String } == ["de-AT"])
        #expect(second.events("host.locale").map { $0["locale"] as? String } == ["de-AT", "fr"])
        #expect(second.events("host.locale").first?["sequence"] as? Int == 2)
    }

    private struct Ticket: KioskOrders {
        func currentOrder() -> KioskOrder? {
            KioskOrder(id: "1", lines: [.init(title: "Ticket", total: 12.34)], total: 12.34, currencyCode: "EUR")
        }

        func settle(_ id: String, _ outcome: KioskPaymentOutcome) {}
    }

    @Test("amounts are written in the language of the page as long as it is there, else in that of the kiosk")
    func amounts() async throws {
        let bench = try await KioskBench(script: []) { _ in }
        let host = BridgeHost(hostVersion: "1.0.0")
        host.register(PaymentCapability(bench.service, orders: Ticket()))
        var page = try #require(Page(host))
        func total(_ data: String) async throws -> String? {
            let order = try await page.request("order.get", data).data["order"] as? [String: Any]
            return (order?["total"] as? [String: Any])?["text"] as? String
        }
        #expect(try await total("{}") == "€12.34")
        host.setLocale(Locale(identifier: "de_DE"))
        #expect(try await total("{}") == "12,34\u{A0}€")
        #expect(try await total(#"{"locale":"en"}"#) == "€12.34")
        #expect(try await total("{}") == "€12.34")
        #expect(try await total(#"{"locale":"pseudo"}"#) == "12,34\u{A0}€")
        _ = try await total(#"{"locale":"en"}"#)
        page.leave()
        page = try #require(Page(host))
        #expect(try await total("{}") == "12,34\u{A0}€")
        let snapshot = page.events("host.ready").first?["snapshot"] as? [String: Any]
        let order = snapshot?["order"] as? [String: Any]
        #expect((order?["total"] as? [String: Any])?["text"] as? String == "12,34\u{A0}€")
    }

    @Test("without a language nothing is told") func none() async throws {
        let host = BridgeHost(hostVersion: "1.0.0")
        let page = try #require(Page(host))
        _ = try await page.request("capability.query")
        #expect(page.events("host.locale").isEmpty)
    }
}

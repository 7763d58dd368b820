import Foundation
import TestSupport
import Testing

/// The files in the folder udev, checked with udevd's own rule reader, modprobe and a JavaScript engine.
@Suite struct UdevTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../udev").standardizedFileURL

    private static let canMount =
        getuid() == 0 && ["udevadm", "unshare", "pcscd"].allSatisfy(Program.isInstalled)

    /// `udevadm test` on the mock bus, where the ACR122U is.
    @Test(.enabled(if: canMount, "udev is not installed, or the test does not run as root"))
    func theRulesMatchAnACR122U() async throws {
        let script = """
            mkdir -p /etc/udev && mount -t tmpfs tmpfs /etc/udev && mkdir /etc/udev/rules.d &&
            cp "$1" /etc/udev/rules.d/ && exec udevadm test "$(readlink -f /sys/bus/usb/devices/1-2)" 2>&1
            """
        let outcome = try await Program.run([
            Program.built("virtual-reader"), "--usb", "--", "unshare", "-m", "sh", "-c", script, "sh",
            Self.folder.appendingPathComponent("70-contactless-readers.rules").path,
        ])
        let lines = outcome.output.split(separator: "\n").map(String.init)
        let ours = lines.filter { $0.contains("70-contactless-readers.rules:") }
        #expect(ours.contains { $0.hasSuffix("MODE 0660") }, "\(outcome)")
        #expect(ours.contains { $0.contains("GROUP ") }, "\(outcome)")
        #expect(
            !lines.contains {
                $0.contains("70-contactless-readers") && ($0.contains("nvalid") || $0.contains("gnoring"))
            })
        #expect(lines.first { $0.hasPrefix("CURRENT_TAGS=") }?.contains(":uaccess:") == true)
        #expect(lines.contains("CONTACTLESS_READER=1"))
    }

    /// Every product that Debian's libccid drives and names contactless, of the vendors in the rules.
    @Test func theRulesNameWhatTheReferenceNames() throws {
        let rules = try String(
            contentsOf: Self.folder.appendingPathComponent("70-contactless-readers.rules"), encoding: .utf8)
        let products = [
            "072f": ["2200", "90cc", "221a", "223b", "223e", "2259", "223f", "2224", "2303", "2308", "2301", "226b"],
            "04e6": ["5790", "5791", "5724", "5612", "5613", "5710", "5720", "5721", "5291", "5293", "512b"],
            "076b": ["5022", "5023", "5127", "5422", "5427", "5326", "5421", "5321"],
            "054c": ["0dc8", "0dc9", "0d8f"], "1c34": ["6112"],
        ]
        for (vendor, products) in products {
            let line = try #require(rules.split(separator: "\n").first { $0.contains("\"\(vendor)\"") }, "\(vendor)")
            for product in products { #expect(line.contains(product), "\(vendor):\(product)") }
        }
    }

    @Test(.enabled(if: Program.isInstalled("modprobe"), "kmod is not installed"))
    func modprobeReadsTheBlacklist() async throws {
        let file = Self.folder.appendingPathComponent("contactless-readers-blacklist.conf").path
        let outcome = try await Program.run(["modprobe", "--config", file, "--showconfig"])
        for module in ["pn533_usb", "pn533", "nfc"] {
            #expect(outcome.output.contains("blacklist \(module)\n"), "\(outcome)")
        }
    }

    /// duktape is the engine in which Debian's polkitd runs such files.
    @Test(.enabled(if: Program.isInstalled("duk"), "duktape is not installed"))
    func thePolkitRuleAdmitsTheGroup() async throws {
        let rule = try String(contentsOf: Self.folder.appendingPathComponent("50-pcscd-plugdev.rules"), encoding: .utf8)
        let harness = """
            var rule, polkit = { Result: { YES: "yes" }, addRule: function (f) { rule = f; } };
            \(rule)
            function ask(action, group) {
                var subject = { isInGroup: function (name) { return name === group; } };
                print(action, group, rule({ id: "org." + action }, subject) || "-");
            }
            ask("debian.pcsc-lite.access_pcsc", "plugdev");
            ask("debian.pcsc-lite.access_pcsc", "users");
            ask("debian.pcsc-lite.access_card", "plugdev");
            ask("debian.pcsc-lite.access_card", "users");
            ask("freedesktop.login1.reboot", "plugdev");
            """
        let outcome = try await Program.run(["duk", "/dev/stdin"], input: harness)
        #expect(
            outcome.output == """
                debian.pcsc-lite.access_pcsc plugdev yes
                debian.pcsc-lite.access_pcsc users -
                debian.pcsc-lite.access_card plugdev yes
                debian.pcsc-lite.access_card users -
                freedesktop.login1.reboot plugdev -

                """, "\(outcome)")
    }
}

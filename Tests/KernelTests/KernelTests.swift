import Foundation
import TestSupport
import Testing

/// The software reader as a true USB device of Debian's kernel, with udevd, the kernel's own NFC driver and pcscd: what a
/// person meets who plugs an ACR122U into a Debian machine.
///
/// One virtual machine does it all, step by step (`Guest/steps`); each test looks at some of the steps.
@Suite(.enabled(if: VirtualMachine.obstacle == nil, "\(VirtualMachine.obstacle ?? "")"))
struct KernelTests {
    private func step(_ name: String, _ status: Int = 0) async throws -> VirtualMachine.Step {
        let step = try await VirtualMachine.shared.value.step(name)
        #expect(step.status == status, "\(step.account("output: \(step.output)\nerror: \(step.error)"))")
        return step
    }

    private func log(_ name: String) async throws -> String { try await VirtualMachine.shared.value.log(name) }

    /// `udev/70-contactless-readers.rules`.
    @Test("the shipped udev rule gives the device node to plugdev", arguments: ["node", "node-again"])
    func theShippedUdevRule(name: String) async throws {
        _ = try await step("udevd")
        #expect(try await step(name).output == "660 plugdev root\n")
    }

    /// https://github.com/LudovicRousseau/pcsc-tools/issues/97
    @Test("out of the box the kernel's driver takes the reader, and pcscd has none")
    func outOfTheBoxTheKernelTakesTheReader() async throws {
        // The step waits until pn533_usb has bound the interface.
        _ = try await step("plug")
        _ = try await step("pcscd-busy")
        _ = try await step("busy")
        #expect(try await log("pcscd-busy").contains("Can't claim interface"))
        #expect(try await log("pcscd-busy").contains("LIBUSB_ERROR_BUSY"))
        let probe = try await step("probe-busy", 3)
        #expect(probe.output.isEmpty)
        #expect(
            probe.error == """
                reader-probe: no reader is attached
                  Plug in a reader and check that lsusb shows it; or try --virtual, which needs none.

                """)
    }

    /// The kernel's driver is asked to let go, and gets the interface back afterwards.
    @Test("straight over USB the card is read all the same, and the kernel's driver gets the reader back")
    func straightOverUSB() async throws {
        let report = try object(try await step("probe-usb").output)
        #expect((report["reader"] as? [String: Any])?["backend"] as? String == "usb")
        let application = try #require((report["applications"] as? [[String: Any]])?.first)
        #expect(application["aid"] as? String == "A0000000031010")
        _ = try await step("driver-again")
    }

    @Test("doctor names the module that holds the reader") func doctorNamesTheModule() async throws {
        let doctor = try await VirtualMachine.shared.value.step("doctor")
        #expect(doctor.output.contains("pn533_usb"), "\(doctor.output)\(doctor.error)")
        #expect(doctor.output.contains("contactless-readers-blacklist.conf"), "\(doctor.output)")
    }

    /// `udev/contactless-readers-blacklist.conf`.
    @Test("the shipped blacklist keeps the kernel's driver away") func theShippedBlacklist() async throws {
        for name in ["blacklist", "unplug", "replug"] { _ = try await step(name) }
        #expect(!(try await step("drivers").output.contains("pn533")))
        _ = try await step("pcscd")
        _ = try await step("reader")
        #expect(!(try await log("pcscd").contains("LIBUSB_ERROR_BUSY")))
    }

    @Test("the card is read through PC/SC") func theCardIsRead() async throws {
        let opensc = try await step("opensc")
        // The ATR as the reader's firmware makes it: the whole ATS of the card as historical bytes.
        #expect(opensc.output.hasPrefix("3b:8b:80:01:0b:78:80:70:02:20:63:cb:b6:80:0f:3a"))
        #expect(opensc.error.contains("ACS ACR122U PICC Interface 00 00"))
        let inProcess = try await Program.run([Program.built("reader-probe"), "card", "--virtual", "--json"])
        for name in ["probe", "probe-again"] {
            let (there, here) = (try object(try await step(name).output), try object(inProcess.output))
            for key in ["applications", "card", "directory", "findings"] {
                #expect(there[key] as? NSObject == here[key] as? NSObject)
                #expect(there[key] != nil)
            }
        }
    }

    @Test("the card's EMV application is read to its cryptogram") func theEMVApplication() async throws {
        let applications = try object(try await step("probe-emv").output)["applications"] as? [[String: Any]]
        let application = try #require(applications?.first)
        #expect(application["aid"] as? String == "A0000000031010")
        #expect((application["cryptogram"] as? String)?.count == 16)
    }

    @Test("pulled out and plugged in again, pcscd loses the reader and finds it") func pulledOut() async throws {
        for name in ["pull", "pulled"] { _ = try await step(name) }
        _ = try await step("probe-pulled", 3)
        for name in ["push", "reader-again", "probe-again"] { _ = try await step(name) }
    }

    @Test("the kernel has nothing to complain about") func theKernelHasNothingToComplainAbout() async throws {
        let console = try await VirtualMachine.shared.value.console
        for complaint in ["BUG:", "Oops", "Call Trace", "blocked for more than"] {
            #expect(!console.contains(complaint), "\(console)")
        }
    }

    private func object(_ json: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    }
}

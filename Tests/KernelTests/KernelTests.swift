import Foundation
import TestSupport
import Testing

/// The software reader as a USB device of the Linux kernel (not an EMV kernel), with udevd, the pn533_usb driver and pcscd:
/// a Debian machine with an ACR122U plugged in.
///
/// One virtual machine does it all, step by step (`Guest/reader-steps`); each test looks at some of the steps.
@Suite(
    .thorough("a Linux kernel boots in QEMU; the same reader behind umockdev stays fast, in ConformanceTests"),
    .enabled(if: VirtualMachine.obstacle == nil, "\(VirtualMachine.obstacle ?? "")"))
struct KernelTests {
    private func step(_ name: String, _ status: Int = 0) async throws -> VirtualMachine.Step {
        let step = try await VirtualMachine.readers.value.step(name)
        #expect(step.status == status, "\(step.account("output: \(step.output)\nerror: \(step.error)"))")
        return step
    }

    private func log(_ name: String) async throws -> String { try await VirtualMachine.readers.value.log(name) }

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
        let doctor = try await VirtualMachine.readers.value.step("doctor")
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

    /// What the driver itself complains of.
    private func complaints(_ step: VirtualMachine.Step) -> [Substring] {
        step.error.split(separator: "\n").filter { $0.hasPrefix("error\t") || $0.contains("ERROR") }
    }

    @Test(
        "libnfc's own driver of the ACR122U finds cards of each technology, and reads tags",
        arguments: [
            ("libnfc-scan", ["1 NFC device(s) found:", "ACS / ACR122U PICC Interface:", "acr122_usb:001:"]),
            (
                "libnfc-list",
                [
                    "ISO/IEC 14443A (106 kbps) target:",
                    "04  5a  3c  12  7e  61  80", "ATS: 78  80  70  02  20  63  cb  b6  80  0f",
                    "FeliCa (212 kbps) target:", "FeliCa (424 kbps) target:", "02  fe  00  01  02  03  04  05",
                    "System Code (SC): 12  fc", "ISO/IEC 14443-4B (106 kbps) target:", "PUPI: 12  23  45  56",
                ]
            ),
            // The message of the card file, in pages: 03 0E, D1 01 0A 55, https:// and the rest.
            ("libnfc-ultralight", ["UID: 046d2a915c7080", "03 0e d1 01 0a 55 04 73 77 69 66 74 2e 6f 72 67"]),
            (
                "libnfc-classic",
                [
                    "Found MIFARE Classic card", "5e  8a  31  c4", "64 of 64 blocks read",
                    // Block 4, and the trailer of sector 2 with key A, which the tool puts in.
                    "73 77 69 66 74 2d 63 6f 6e 74 61 63 74 6c 65 73", "a0 a1 a2 a3 a4 a5 4c 37 8b 69",
                ]
            ), ("libnfc-felica", ["\u{1}\nU\u{4}swift.org"]),
        ])
    func libnfcReads(name: String, expected: [String]) async throws {
        let step = try await step(name)
        for text in expected { #expect(step.output.contains(text), "\(step.account(step.output + step.error))") }
        #expect(complaints(step) == [])
    }

    @Test("libnfc's own driver polls for a card and sees it leave") func libnfcPolls() async throws {
        _ = try await step("libnfc-poll")
        let log = try await log("nfc-poll")
        #expect(log.contains("04  5a  3c  12  7e  61  80") && log.contains("done."), "\(log)")
    }

    /// It switches the reader's own polling off and leaves it so.
    @Test("after libnfc doctor says why no card is found, and what it names mends that") func afterLibnfc() async throws
    {
        let doctor = try await VirtualMachine.readers.value.step("doctor-libnfc")
        #expect(doctor.output.contains("the PICC operating parameter (FF00500000) is 00"), "\(doctor.output)")
        #expect(doctor.output.contains("$ reader-probe reset --backend usb"), "\(doctor.output)")
        _ = try await step("reset")
        // Pcscd finds the card that lies there.
        _ = try await step("opensc")
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

    /// Neither is a moment for taking a reader from it.
    @Test("a pcscd that is stopped, and one that a reader is new to, is waited for") func leftToPCSCD() async throws {
        for name in ["stopped", "probe-pushed"] {
            let step = try await step(name)
            #expect(step.output.contains("ACS ACR122U PICC Interface 00 00"), "\(step.account(step.output))")
            #expect(!step.output.contains("072F:2200@"), "\(step.account(step.output))")
        }
        for name in ["watch", "watched"] { _ = try await step(name) }
        let watch = try await log("watch")
        #expect(watch.contains("ACS ACR122U PICC Interface 00 00") && !watch.contains("072F:2200@"), "\(watch)")
    }

    @Test("the kernel has nothing to complain about") func theKernelHasNothingToComplainAbout() async throws {
        let console = try await VirtualMachine.readers.value.console
        for complaint in ["BUG:", "Oops", "Call Trace", "blocked for more than"] {
            #expect(!console.contains(complaint), "\(console)")
        }
    }

    private func object(_ json: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    }
}

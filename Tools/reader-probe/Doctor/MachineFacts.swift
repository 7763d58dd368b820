import CardReaders
import SmartCard
import SmartCardUSB

/// What `doctor` knows of a machine: facts only, without judgement.  What could not be found out is nil.
struct MachineFacts {
    /// Whether readers are driven straight over USB, so that ``readers`` are those on the USB.
    var isWithoutService = false
    /// Nil where no USB is to be seen at all.
    var usb: [USBDevice]?
    var surroundings = Surroundings()
    var kernel = Kernel()
    /// The files that hold udev rules, with what they say.
    var udevRules: [(path: String, lines: [String])] = []
    var drivers: [Driver] = []
    var service = Service()
    var user = User()
    var readers: [Reader] = []

    struct USBDevice {
        /// Bus and ports: `1-2`.
        let place: String
        let vendorID: UInt16
        let productID: UInt16
        /// bcdDevice.
        let release: UInt16
        let manufacturer: String?
        let product: String?
        let serialNumber: String?
        let descriptors: USBDescriptors?
        let interfaces: [Interface]
        /// In Mbit/s: `12`.
        let speed: String?
        let isAuthorized: Bool
        /// False where the kernel chose no configuration, as it does for want of power.
        let isConfigured: Bool
        /// Whether the kernel puts it to sleep when nobody uses it.
        let isSuspendedWhenIdle: Bool
        /// Whether it hangs on a hub that has only what its own port gives it.
        let isOnUnpoweredHub: Bool
        let node: Node
        /// Bus in the high, address in the low byte, as SCARD_ATTR_CHANNEL_ID has it.
        let channel: UInt16
        /// The processes that have the node open.
        var holders: [Process]
    }

    struct Interface {
        let number: Int
        let interfaceClass: UInt8
        /// The kernel driver; `usbfs` for a process that claimed it.
        let driver: String?
    }

    struct Node {
        let path: String
        var exists = false
        /// Whether this user may read and write it.
        var isAccessible = false
        var mode: UInt32 = 0
        var owner: UInt32 = 0
        var group: UInt32 = 0

        /// Whether the mode lets a user read and write it.  Access control lists are not looked at.
        func permits(_ user: UInt32, in groups: Set<UInt32>) -> Bool {
            let shift: UInt32 = user == owner ? 6 : groups.contains(group) ? 3 : 0
            return user == 0 || mode >> shift & 0o6 == 0o6
        }
    }

    struct Process {
        let id: Int
        let name: String
    }

    /// What the machine runs in.
    struct Surroundings {
        /// What makes it a virtual machine: `QEMU`.
        var hypervisor: String?
        /// What makes it a container: `docker`.
        var container: String?
        /// Whether udev's socket is to be seen, without which libusb hears of no reader that comes or goes.
        var hasUdev = true
    }

    struct Kernel {
        var loaded: Set<String> = []
        /// Named in a blacklist, or replaced by a command that does nothing.
        var blacklisted: Set<String> = []
        /// Whether the kernel has pn533_usb to load; nil if its modules are not to be seen.
        var hasPN533: Bool?
    }

    /// A driver of pcscd.
    struct Driver {
        let name: String
        /// The Info.plist.
        let path: String
        let version: String?
        /// ifdDriverOptions.
        let options: UInt32
        /// Vendor in the high, product in the low 16 bits.
        let readers: [UInt32: String]
    }

    /// What pcscd asks polkit about.
    enum PolkitAction: String {
        case accessPCSC = "org.debian.pcsc-lite.access_pcsc"
        case accessCard = "org.debian.pcsc-lite.access_card"
    }

    enum PolkitDecision {
        case allowed
        case denied
        /// Yes to who enters an administrator's password, which pcscd gives nobody the occasion to.
        case needsPassword
        /// Its file for pcscd is missing.
        case unknownAction
        /// Polkit does not run, in the words of who asked.
        case unreachable(String)
    }

    struct Service {
        /// The path of pcscd; nil if it is not installed.
        var program: String?
        /// Such as `1.9.9`, and who says so.
        var version: String?
        var versionSource = ""
        /// What pcscd is built with, as it lists it.
        var features: Set<String>?
        /// Of the package libpcsclite1, without Debian's part.
        var libraryVersion: String?
        var process: Process?
        var processUser: UInt32?
        var processGroups: Set<UInt32> = []
        var socketPath = ""
        var hasSocket = false
        /// Whether systemd starts it when the socket is used.
        var isActivatedBySocket = false
        var hasSystemd = false
        /// Whether it was started with `--disable-polkit`.
        var isPolkitSwitchedOff = false
        /// The files that say who may use pcscd.
        var polkitRules: [String] = []
        /// Without what could not be asked, for want of pkcheck.
        var decisions: [PolkitAction: PolkitDecision] = [:]
        /// What it said to the first call; nil for the list of readers.
        var refusal: CardError?
    }

    struct User {
        var id: UInt32 = 0
        var isRemote = false
        /// Whether processes of others could not be looked at.
        var seesOnlyOwnProcesses = false
    }

    /// A reader that pcscd, or USB, lists.
    struct Reader {
        let name: String
        /// Whether pcscd drives it, and not this process.
        var isOfService = true
        var state = SlotState.unknown
        var failure: CardError?
        /// Nil for one that nothing is asked of.
        var model: Model?
        /// What it says of itself.
        var firmware: String?
        /// What cards it looks for, and whether by itself; nil where it does not tell.
        var polling: ReaderCommands.Polling?
        /// How a command reached the reader; nil if none did.
        var route: String?
        var routeFailure: CardError?
        /// Nil if no card was there.
        var exchange: Exchange?
    }

    var readersOfService: [Reader] { readers.filter(\.isOfService) }
    var cardWasRead: Bool { readers.contains { if case .answered = $0.exchange { true } else { false } } }

    enum Exchange {
        case answered(command: String, status: String, technology: String)
        case failed(CardError)
    }
}

extension MachineFacts.USBDevice {
    /// Vendor in the high, product in the low 16 bits.
    var id: UInt32 { UInt32(vendorID) << 16 | UInt32(productID) }
    var idText: String { hexadecimal(vendorID) + ":" + hexadecimal(productID) }
    /// As sysfs and udev rules have them: `072f`, `2200`.
    var attributes: (idVendor: String, idProduct: String) {
        (hexadecimal(vendorID).lowercased(), hexadecimal(productID).lowercased())
    }
    /// bcdDevice as people write it: `2.14`.
    var releaseText: String { "\(String(release >> 8, radix: 16)).\(hexadecimal(release & 0xFF, digits: 2))" }
    var ccidInterfaces: [MachineFacts.Interface] {
        interfaces.filter { $0.interfaceClass == 0x0B || $0.interfaceClass == 0xFF && descriptors?.ccid != nil }
    }

    var quirks: Set<ReaderQuirk> { KnownReader.quirks(vendorID: vendorID, productID: productID, release: release) }

    var isACR122U: Bool { id == 0x072F_2200 }

    /// Contactless readers with protocols of their own, which pcscd has no driver for.
    static let withoutCCID: [UInt32: String] = [
        0x04CC_2533: "NXP PN533", 0x04E6_5591: "SCM SCL3711", 0x054C_02E1: "Sony RC-S330",
        0x054C_06C1: "Sony RC-S380/S",
        0x054C_06C3: "Sony RC-S380/P",
    ]

    /// The devices that Linux's pn533_usb takes (drivers/nfc/pn533/usb.c).
    static let ofPN533: Set<UInt32> = [0x04CC_2533, 0x04E6_5591, 0x054C_02E1, 0x072F_2200]
}

func hexadecimal(_ number: some BinaryInteger, digits: Int = 4) -> String {
    let text = String(number, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
}

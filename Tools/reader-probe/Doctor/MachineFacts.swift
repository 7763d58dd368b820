import CardReaders
import SmartCard
import SmartCardUSB

/// The facts that `doctor` collects about a machine, without judgment.  An unknown fact is nil.
struct MachineFacts {
    /// True if readers are driven directly over USB, so that ``readers`` contains USB readers.
    var isWithoutService = false
    /// The USB devices; nil if no USB is visible.
    var usb: [USBDevice]?
    var surroundings = Surroundings()
    var kernel = Kernel()
    /// The files with udev rules and their contents.
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
        /// The speed in Mbit/s: `12`.
        let speed: String?
        let isAuthorized: Bool
        /// False if the kernel chose no configuration, as it does for lack of power.
        let isConfigured: Bool
        /// True if the kernel suspends the device when idle.
        let isSuspendedWhenIdle: Bool
        /// True if the device is attached to a hub without its own power supply.
        let isOnUnpoweredHub: Bool
        let node: Node
        /// Bus in the high, address in the low byte, as in SCARD_ATTR_CHANNEL_ID.
        let channel: UInt16
        /// The processes that have opened the node.
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
        /// True if this user may read and write the node.
        var isAccessible = false
        var mode: UInt32 = 0
        var owner: UInt32 = 0
        var group: UInt32 = 0

        /// Returns true if the mode lets a user read and write.  Access control lists are ignored.
        func permits(_ user: UInt32, in groups: Set<UInt32>) -> Bool {
            let shift: UInt32 = user == owner ? 6 : groups.contains(group) ? 3 : 0
            return user == 0 || mode >> shift & 0o6 == 0o6
        }
    }

    struct Process {
        let id: Int
        let name: String
    }

    /// The environment in which the machine runs.
    struct Surroundings {
        /// The hypervisor of a virtual machine: `QEMU`.
        var hypervisor: String?
        /// The container manager: `docker`.
        var container: String?
        /// True if udev's socket is visible.  Without it, libusb receives no events of readers.
        var hasUdev = true
    }

    struct Kernel {
        var loaded: Set<String> = []
        /// Modules in a blacklist, or replaced by a command without effect.
        var blacklisted: Set<String> = []
        /// True if the kernel has the module pn533_usb; nil if its modules are not visible.
        var hasPN533: Bool?
    }

    /// A driver of pcscd.
    struct Driver {
        let name: String
        /// The path of the Info.plist.
        let path: String
        let version: String?
        /// ifdDriverOptions.
        let options: UInt32
        /// The supported readers; vendor in the high, product in the low 16 bits.
        let readers: [UInt32: String]
    }

    /// An action that pcscd asks polkit about.
    enum PolkitAction: String {
        case accessPCSC = "org.debian.pcsc-lite.access_pcsc"
        case accessCard = "org.debian.pcsc-lite.access_card"
    }

    enum PolkitDecision {
        case allowed
        case denied
        /// Requires an administrator's password, which pcscd never asks for.
        case needsPassword
        /// The policy file for pcscd is missing.
        case unknownAction
        /// Polkit does not run; the text is the caller's error.
        case unreachable(String)
    }

    struct Service {
        /// The path of pcscd; nil if it is not installed.
        var program: String?
        /// The version, such as `1.9.9`, and its source.
        var version: String?
        var versionSource = ""
        /// The features that pcscd lists.
        var features: Set<String>?
        /// The version of the package libpcsclite1, without Debian's suffix.
        var libraryVersion: String?
        var process: Process?
        var processUser: UInt32?
        var processGroups: Set<UInt32> = []
        var socketPath = ""
        var hasSocket = false
        /// True if systemd starts pcscd when its socket is used.
        var isActivatedBySocket = false
        var hasSystemd = false
        /// True if pcscd was started with `--disable-polkit`.
        var isPolkitSwitchedOff = false
        /// The files with polkit rules for pcscd.
        var polkitRules: [String] = []
        /// The decisions of polkit; empty without pkcheck.
        var decisions: [PolkitAction: PolkitDecision] = [:]
        /// The error of the first call; nil if it returned a list of readers.
        var refusal: CardError?
    }

    struct User {
        var id: UInt32 = 0
        var isRemote = false
        /// True if other users' processes were not visible.
        var seesOnlyOwnProcesses = false
    }

    /// A reader listed by pcscd or over USB.
    struct Reader {
        let name: String
        /// True if pcscd drives the reader, false if this process does.
        var isOfService = true
        var state = SlotState.unknown
        var failure: CardError?
        /// The model; nil for a reader that is asked nothing.
        var model: Model?
        /// The firmware version that the reader reports.
        var firmware: String?
        /// The reader's search for cards; nil if the reader does not report it.
        var polling: ReaderCommands.Polling?
        /// The route of a command to the reader; nil if none reached it.
        var route: String?
        var routeFailure: CardError?
        /// The exchange with a card; nil if no card was present.
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
    /// The identifiers: vendor in the high, product in the low 16 bits.
    var id: UInt32 { UInt32(vendorID) << 16 | UInt32(productID) }
    var idText: String { hexadecimal(vendorID) + ":" + hexadecimal(productID) }
    /// The identifiers as in sysfs and udev rules: `072f`, `2200`.
    var attributes: (idVendor: String, idProduct: String) {
        (hexadecimal(vendorID).lowercased(), hexadecimal(productID).lowercased())
    }
    /// The bcdDevice in its usual form: `2.14`.
    var releaseText: String { "\(String(release >> 8, radix: 16)).\(hexadecimal(release & 0xFF, digits: 2))" }
    var ccidInterfaces: [MachineFacts.Interface] {
        interfaces.filter { $0.interfaceClass == 0x0B || $0.interfaceClass == 0xFF && descriptors?.ccid != nil }
    }

    var quirks: Set<ReaderQuirk> { KnownReader.quirks(vendorID: vendorID, productID: productID, release: release) }

    var isACR122U: Bool { id == 0x072F_2200 }

    /// Contactless readers with proprietary protocols, which pcscd has no driver for.
    static let withoutCCID: [UInt32: String] = [
        0x04CC_2533: "NXP PN533", 0x04E6_5591: "SCM SCL3711", 0x054C_02E1: "Sony RC-S330",
        0x054C_06C1: "Sony RC-S380/S",
        0x054C_06C3: "Sony RC-S380/P",
    ]

    /// The devices that Linux's pn533_usb supports (drivers/nfc/pn533/usb.c).
    static let ofPN533: Set<UInt32> = [0x04CC_2533, 0x04E6_5591, 0x054C_02E1, 0x072F_2200]
}

func hexadecimal(_ number: some BinaryInteger, digits: Int = 4) -> String {
    let text = String(number, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
}

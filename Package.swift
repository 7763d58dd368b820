// swift-tools-version: 6.2
import PackageDescription

let coreMetrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let flyingFox = Target.Dependency.product(name: "FlyingFox", package: "FlyingFox")
let flyingSocks = Target.Dependency.product(name: "FlyingSocks", package: "FlyingFox")
let jwtKit = Target.Dependency.product(name: "JWTKit", package: "jwt-kit")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioWebSocket = Target.Dependency.product(name: "NIOWebSocket", package: "swift-nio")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
    name: "swift-contactless",
    products: [
        .library(name: "Waiting", targets: ["Waiting"]),
        .library(name: "ContactlessMetrics", targets: ["ContactlessMetrics"]),
        .library(name: "SmartCard", targets: ["SmartCard"]),
        .library(name: "SmartCardPCSC", targets: ["SmartCardPCSC"]),
        .library(name: "SmartCardPN532", targets: ["SmartCardPN532"]),
        .library(name: "SmartCardUSB", targets: ["SmartCardUSB"]),
        .library(name: "USBDevices", targets: ["USBDevices"]),
        .library(name: "CardReaders", targets: ["CardReaders"]),
        .library(name: "SmartCardTrace", targets: ["SmartCardTrace"]),
        .library(name: "SmartCardSimulator", targets: ["SmartCardSimulator"]),
        .library(name: "SmartCardSimulatorHosts", targets: ["SmartCardSimulatorHosts"]),
        .library(name: "EMVContactless", targets: ["EMVContactless"]),
        .library(name: "TravelDocument", targets: ["TravelDocument"]),
        .library(name: "WalletPasses", targets: ["WalletPasses"]),
        .library(name: "TravelDocumentImages", targets: ["TravelDocumentImages"]),
        .library(name: "CardEncryption", targets: ["CardEncryption"]),
        .library(name: "CWipedHeap", targets: ["CWipedHeap"]),
        .library(name: "ProximityReader", targets: ["ProximityReader"]),
        .library(name: "KioskKit", targets: ["KioskKit"]),
        .library(name: "KioskBridge", targets: ["KioskBridge"]),
        .library(name: "KioskBridgeServer", targets: ["KioskBridgeServer"]),
        .library(name: "Cameras", targets: ["Cameras"]),
        .library(name: "CardReaderAdapter", targets: ["CardReaderAdapter"]),
        .library(name: "CardReaderCombine", targets: ["CardReaderCombine"]),
        .library(name: "CardReceipts", targets: ["CardReceipts"]),
        .library(name: "ComposableCheckout", targets: ["ComposableCheckout"]),
        .executable(name: "apdu-trace", targets: ["apdu-trace"]),
        .executable(name: "kiosk", targets: ["kiosk"]),
        .executable(name: "kiosk-host", targets: ["kiosk-host"]),
        .library(name: "pcsc-preload", type: .dynamic, targets: ["PCSCPreload"]),
        .executable(name: "psp-sandbox", targets: ["psp-sandbox"]),
        .executable(name: "reader-probe", targets: ["reader-probe"]),
        .executable(name: "receipt", targets: ["receipt"]),
        .executable(name: "virtual-reader", targets: ["virtual-reader"]),
    ],
    // For dependents that do without a C library.  The tools need all of them.
    traits: [
        .default(enabledTraits: ["CUPS", "UMockdev", "USB"]),
        .trait(name: "CUPS", description: "Receipts for printers of IPP, with libcups."),
        .trait(name: "UMockdev", description: "Software readers on a mock USB bus, with umockdev."),
        .trait(name: "USB", description: "Readers and printers over USB, with libusb."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.3.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.10.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        // Metrics of a task (withMetricsFactory), as the tests have them.
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.9.0"),
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
        .package(url: "https://github.com/swhitty/FlyingFox", .upToNextMinor(from: "0.27.1")),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.1.0"),
    ],
    targets: [
        // C libraries, each behind one header.
        .systemLibrary(
            name: "CSmartCardPCSC", pkgConfig: "libpcsclite", providers: [.apt(["libpcsclite-dev"])]),
        .systemLibrary(
            name: "CLibUSB", pkgConfig: "libusb-1.0", providers: [.apt(["libusb-1.0-0-dev"])]),
        .systemLibrary(
            name: "CCryptoLegacy", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(
            name: "CUMockdev", pkgConfig: "umockdev-1.0", providers: [.apt(["libumockdev-dev"])]),
        // The messages from PCSCPreload to apdu-trace; only a header.
        .systemLibrary(name: "CPCSCEvents"),

        // Libraries.
        .target(name: "Waiting"),
        .target(name: "ContactlessMetrics", dependencies: ["Waiting", coreMetrics]),
        .target(name: "SmartCard", dependencies: ["Waiting", logging]),
        .target(
            name: "SmartCardPCSC", dependencies: ["SmartCard", "Waiting", "CSmartCardPCSC"]),
        .target(name: "SmartCardPN532", dependencies: ["SmartCard", "Waiting"]),
        .target(name: "SmartCardTrace", dependencies: ["SmartCard", "Waiting"]),
        .target(
            name: "USBDevices",
            dependencies: [.target(name: "CLibUSB", condition: .when(traits: ["USB"])), "Waiting", logging]),
        .target(
            name: "SmartCardUSB", dependencies: ["SmartCard", "USBDevices", "Waiting", logging]),
        .target(
            name: "CardReaders",
            dependencies: [
                "SmartCard", "SmartCardPCSC", "SmartCardPN532", "SmartCardUSB", "USBDevices", "Waiting", logging,
            ]),
        .target(
            name: "SmartCardSimulator", dependencies: ["SmartCard", "Waiting", "CCryptoLegacy", "CZlib"],
            resources: [.embedInCode("Cards")]),
        .target(
            name: "SmartCardSimulatorHosts",
            dependencies: [
                "SmartCardSimulator", "Waiting", .target(name: "CUMockdev", condition: .when(traits: ["UMockdev"])),
            ]),
        .target(
            name: "EMVContactless", dependencies: ["SmartCard", "Waiting", "CCryptoLegacy"],
            resources: [.embedInCode("OfflineAuthentication/Published")]),
        .target(name: "TravelDocument", dependencies: ["CCryptoLegacy", "SmartCard", "Waiting"]),
        .target(name: "WalletPasses", dependencies: ["CZlib", "CardEncryption", "SmartCard", crypto, cryptoExtras]),
        .systemLibrary(name: "COpenJPEG", pkgConfig: "libopenjp2", providers: [.apt(["libopenjp2-7-dev"])]),
        .systemLibrary(name: "CTurboJPEG", pkgConfig: "libturbojpeg", providers: [.apt(["libturbojpeg0-dev"])]),
        .target(name: "TravelDocumentImages", dependencies: ["COpenJPEG", "CTurboJPEG", "TravelDocument"]),
        .target(
            name: "CardEncryption", dependencies: ["Waiting", "CCryptoLegacy", crypto, cryptoExtras]),

        .systemLibrary(name: "CSystemBus", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CQRCode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
        .systemLibrary(name: "CServiceManager", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        // For executables: a program that links it wipes its heap memory when freeing it.  No library depends on it.
        .target(name: "CWipedHeap"),
        .target(
            name: "ProximityReader",
            dependencies: [
                "CSystemBus", "ContactlessMetrics", "EMVContactless", "CardEncryption", "CardReaders", "SmartCard",
                "Waiting", "WalletPasses",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"), jwtKit,
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"), crypto, logging,
            ]),
        .target(
            name: "KioskKit",
            dependencies: [
                "CardReceipts", "ContactlessMetrics", "EMVContactless", "ProximityReader", "SmartCard", "Waiting",
                crypto,
                logging,
            ]),
        .systemLibrary(name: "CCUPS", providers: [.apt(["libcups2-dev"])]),
        .target(
            name: "CardReceipts",
            dependencies: [
                .target(name: "CCUPS", condition: .when(traits: ["CUPS"])), "EMVContactless", "SmartCard", "USBDevices",
                "Waiting",
            ]),
        .target(
            name: "CardReaderAdapter",
            dependencies: [
                "CardReaders", "CardReceipts", "EMVContactless", "KioskKit", "ProximityReader", "SmartCard", "Waiting",
                logging,
            ]),
        .target(
            name: "CardReaderCombine",
            dependencies: [
                "CardReaderAdapter", "CardReceipts", "ComposableCheckout", "Waiting",
                .product(name: "OpenCombine", package: "OpenCombine"),
            ]),
        .target(
            name: "ComposableCheckout",
            dependencies: [
                "CardEncryption", "EMVContactless", "KioskKit", "ProximityReader", "SmartCard", "Waiting", logging,
            ]),
        // Cameras: the kernel's structures and requests; only headers.
        .systemLibrary(name: "CV4L2", providers: [.apt(["linux-libc-dev"])]),
        .target(name: "Cameras", dependencies: ["CTurboJPEG", "CV4L2", "Waiting"]),
        // Input devices: the same.
        .systemLibrary(name: "CInput", providers: [.apt(["linux-libc-dev"])]),
        .target(
            name: "KioskBridge",
            dependencies: [
                "CInput", "CSystemBus", "Cameras", "CardEncryption", "CardReaders", "CardReceipts",
                "ComposableCheckout", "ContactlessMetrics",
                "EMVContactless", "KioskKit", "ProximityReader", "SmartCard", "TravelDocument", "TravelDocumentImages",
                "Waiting", crypto, logging,
            ]),
        // The WebSocket and the page's files.
        .target(
            name: "KioskBridgeServer",
            dependencies: [
                "ContactlessMetrics", "KioskBridge", "Waiting", logging, nioCore, nioHTTP1, nioPosix, nioWebSocket,
            ],
            resources: [.embedInCode("Page")]),

        // Tools.
        // The base of every tool: terminal output and an orderly end.
        .target(
            name: "ToolSupport", dependencies: ["GitDescription", "SmartCard", argumentParser],
            path: "Tools/ToolSupport"),
        // What git says of the commit that is built, for the tools' version; the plugin writes it.
        .target(
            name: "GitDescription", path: "Tools/GitDescription", exclude: ["Plugin", "describe"],
            plugins: ["GitDescriptionPlugin"]),
        .plugin(name: "GitDescriptionPlugin", capability: .buildTool(), path: "Tools/GitDescription/Plugin"),
        // The parts of tools that use readers and payments.
        .target(
            name: "ToolReaders",
            dependencies: [
                "ToolSupport", "CardReaders", "SmartCard", "SmartCardSimulator", "EMVContactless", "TravelDocument",
                argumentParser, logging,
            ],
            path: "Tools/ToolReaders"),
        .executableTarget(
            name: "apdu-trace",
            dependencies: [
                "ToolReaders", "ToolSupport", "CardReaders", "SmartCardTrace", "SmartCard", "SmartCardSimulator",
                "SmartCardSimulatorHosts", "EMVContactless", "CPCSCEvents", "CWipedHeap", argumentParser,
                crypto,
            ],
            path: "Tools/apdu-trace", exclude: ["apdu-trace.1"]),
        // No target links it: apdu-trace preloads it into programs.  It must not need libpcsclite, so that each program
        // keeps its own; therefore it does not use CSmartCardPCSC.
        .target(
            name: "PCSCPreload", path: "Tools/pcsc-preload", publicHeadersPath: "headers",
            cSettings: [.headerSearchPath("headers"), .headerSearchPath("../../Sources/CPCSCEvents")],
            // It must not need Swift's runtime either, which SwiftPM links for every language except in embedded
            // programs.
            linkerSettings: [.unsafeFlags(["-enable-experimental-feature", "Embedded"])]),
        .executableTarget(
            name: "kiosk-host",
            dependencies: [
                "CQRCode", "CServiceManager", "KioskBridge", "KioskBridgeServer", "KioskPage", "CWipedHeap",
                "CardReaders", "CardReceipts", "ComposableCheckout", "ContactlessMetrics", "EMVContactless", "KioskKit",
                "ProximityReader", "SandboxClient", "SmartCard", "SmartCardSimulator", "ToolReaders", "ToolSupport",
                "TravelDocument", "Waiting", argumentParser, coreMetrics, logging, nioCore, nioHTTP1, nioPosix,
            ],
            path: "Tools/kiosk-host", exclude: ["chromium-policies.json", "kiosk-host.1"]),
        .executableTarget(
            name: "psp-sandbox",
            dependencies: [
                "CardEncryption", "CWipedHeap", "EMVContactless", "SmartCard", "ToolSupport", argumentParser, crypto,
                flyingFox, flyingSocks, jwtKit,
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ],
            path: "Tools/psp-sandbox", exclude: ["psp-sandbox.1"]),
        .executableTarget(
            name: "reader-probe",
            dependencies: [
                "ToolReaders", "ToolSupport", "CardEncryption", "CardReaders", "SmartCard", "SmartCardPCSC",
                "SmartCardUSB", "SmartCardPN532", "EMVContactless", "TravelDocument", "TravelDocumentImages",
                "WalletPasses", "CWipedHeap", argumentParser,
                logging,
            ],
            path: "Tools/reader-probe", exclude: ["reader-probe.1"]),
        .executableTarget(
            name: "receipt", dependencies: ["CardReceipts", "EMVContactless", "ToolSupport", argumentParser],
            path: "Tools/receipt", exclude: ["receipt.1"]),
        .executableTarget(
            name: "virtual-reader",
            dependencies: ["SmartCardSimulator", "SmartCardSimulatorHosts", "ToolSupport", argumentParser],
            path: "Tools/virtual-reader", exclude: ["virtual-reader.1"]),

        // Examples.
        // The checkout on a terminal.
        .executableTarget(
            name: "checkout",
            dependencies: [
                "CWipedHeap", "CheckoutTerminal", "ComposableCheckout", "EMVContactless", "SandboxClient",
                argumentParser,
            ],
            path: "Examples/checkout", exclude: ["CheckoutTerminal"]),
        // A checkout's renderer for terminals.
        .target(
            name: "CheckoutTerminal", dependencies: ["ComposableCheckout", "EMVContactless"],
            path: "Examples/checkout/CheckoutTerminal"),
        .executableTarget(
            name: "first-program", dependencies: ["CardReaders", "SmartCard", "EMVContactless", "CWipedHeap"],
            path: "Examples/first-program"),
        // Starts psp-sandbox unless another payment service is named.
        .executableTarget(
            name: "kiosk",
            dependencies: [
                "CheckoutTerminal", "ComposableCheckout", "KioskKit", "ProximityReader", "EMVContactless",
                "SandboxClient", "SmartCard", "SmartCardSimulator", "WalletPasses", "CWipedHeap", argumentParser,
                logging,
            ],
            path: "Examples/kiosk", exclude: ["SandboxClient"]),
        // The page that kiosk-host serves.
        .target(
            name: "KioskPage", path: "Examples/kiosk-page", exclude: ["README.md", "pictures"],
            resources: [.embedInCode("page")]),
        // Connects KioskKit's applications to psp-sandbox, with the keys of a demonstration.  The program that KioskKitTests
        // kill uses it, too.
        .target(
            name: "SandboxClient",
            dependencies: [
                "CardEncryption", "EMVContactless", "KioskKit", "ProximityReader", "SmartCard", "SmartCardSimulator",
                "WalletPasses", "psp-sandbox",
            ],
            path: "Examples/kiosk/SandboxClient"),

        // Benchmarks: part of this package because they need package access.
        .target(
            name: "CBaseline", dependencies: ["CSmartCardPCSC", "CLibUSB", "CCryptoLegacy"],
            path: "Benchmarks/CBaseline",
            linkerSettings: [.linkedLibrary("sqlite3")]),
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "CBaseline", "CardReaders", "SmartCard", "SmartCardPCSC", "SmartCardPN532", "SmartCardUSB",
                "SmartCardTrace", "USBDevices",
                "SmartCardSimulator", "SmartCardSimulatorHosts", "EMVContactless", "CardEncryption", "ProximityReader",
                "KioskBridge", "KioskBridgeServer", "KioskKit", "ComposableCheckout", "TravelDocument", "WalletPasses",
                "CWipedHeap",
                crypto, logging,
                .product(name: "JWTKit", package: "jwt-kit"),
            ],
            path: "Benchmarks/benchmarks"),

        // Tests.
        .target(name: "CTestProcess", path: "Tests/CTestProcess"),
        // OpenPACE, the other side of access control.
        .systemLibrary(
            name: "CLibEAC", path: "Tests/CLibEAC", providers: [.apt(["libeac-dev"])]),
        .target(
            name: "TestSupport",
            dependencies: ["CTestProcess", "SmartCard", "SmartCardPN532", "SmartCardSimulator", "Waiting"],
            path: "Tests/TestSupport"),
        .target(
            name: "USBTestSupport",
            dependencies: [
                "USBDevices", "SmartCardUSB", "SmartCardSimulator", "SmartCardSimulatorHosts",
                "TestSupport", "Waiting",
            ],
            path: "Tests/USBTestSupport"),
        // The sources themselves: folders, imports, the picture of targets.
        .testTarget(name: "ArchitectureTests"),
        .testTarget(name: "WaitingTests", dependencies: ["TestSupport", "Waiting"]),
        .testTarget(name: "ContactlessMetricsTests", dependencies: ["ContactlessMetrics", "TestSupport", coreMetrics]),
        // The program whose memory DocumentTaintTests search for the holder of a document.
        .executableTarget(
            name: "tainted-document", dependencies: ["CWipedHeap", "CardReaders", "SmartCard", "TravelDocument"],
            path: "Tests/TravelDocumentTests/tainted-document"),
        .testTarget(
            name: "TravelDocumentTests",
            dependencies: [
                "CLibEAC", "CardReaders", "SmartCard", "SmartCardPCSC", "SmartCardSimulator", "TestSupport",
                "TravelDocument", "Waiting", "tainted-document", "virtual-reader",
            ],
            exclude: ["tainted-document"]),
        .testTarget(
            name: "WalletPassesTests",
            dependencies: [
                "CardEncryption", "SmartCard", "SmartCardSimulator", "TestSupport", "WalletPasses", crypto,
            ]),
        .testTarget(
            name: "TravelDocumentImagesTests",
            dependencies: [
                "SmartCard", "SmartCardTrace", "TestSupport", "ToolSupport", "TravelDocument", "TravelDocumentImages",
            ]),
        .testTarget(
            name: "SmartCardTests", dependencies: ["SmartCard", "TestSupport", "Waiting", logging]),
        .testTarget(
            name: "SmartCardPCSCTests", dependencies: ["SmartCardPCSC", "SmartCard", "TestSupport", "Waiting"]),
        .testTarget(
            name: "SmartCardPN532Tests",
            dependencies: [
                "SmartCardPN532", "SmartCard", "SmartCardPCSC", "SmartCardSimulator", "SmartCardSimulatorHosts",
                "EMVContactless", "TestSupport", "Waiting",
                "virtual-reader",
            ],
            exclude: ["Judges"]),
        .testTarget(
            name: "SmartCardUSBTests",
            dependencies: [
                "SmartCardUSB", "SmartCard", "SmartCardPN532", "SmartCardSimulator", "SmartCardSimulatorHosts",
                "EMVContactless", "TestSupport", "USBDevices", "USBTestSupport", "Waiting", logging,
            ]),
        .testTarget(
            name: "CardReadersTests",
            dependencies: [
                "CardReaders", "SmartCard", "SmartCardPCSC", "SmartCardPN532", "SmartCardUSB", "SmartCardSimulator",
                "SmartCardSimulatorHosts", "TestSupport", "USBDevices", "USBTestSupport", "Waiting", "virtual-reader",
                logging,
            ]),
        .testTarget(
            name: "SmartCardTraceTests",
            dependencies: [
                "SmartCardTrace", "SmartCard", "SmartCardSimulator", "EMVContactless", "TestSupport", "TravelDocument",
                "CardEncryption", "Waiting", "WalletPasses",
            ]),
        .testTarget(
            name: "SmartCardSimulatorTests",
            dependencies: ["SmartCardSimulator", "SmartCard", "TestSupport", "Waiting"],
            exclude: ["mint-test-keys"]),
        // The program with which EMVContactlessTests measure the first card of a process.
        .executableTarget(
            name: "first-tap", dependencies: ["CBaseline", "EMVContactless", "SmartCard", "SmartCardSimulator"],
            path: "Tests/EMVContactlessTests/first-tap"),
        .testTarget(
            name: "EMVContactlessTests",
            dependencies: ["first-tap", "EMVContactless", "SmartCard", "SmartCardSimulator", "TestSupport", "Waiting"],
            exclude: ["Rules", "Minting", "Vectors", "first-tap"]),
        // The program that CardEncryptionTests kill while it uses up DUKPT counters.
        .executableTarget(
            name: "ksn-spender", dependencies: ["CardEncryption"], path: "Tests/CardEncryptionTests/ksn-spender"),
        .testTarget(
            name: "CardEncryptionTests",
            dependencies: ["CardEncryption", "TestSupport", "ksn-spender", crypto],
            exclude: ["ksn-spender", "Judges", "Vectors"]),
        // The program whose memory TaintTests search for card data.
        .executableTarget(
            name: "tainted-terminal",
            dependencies: ["ProximityReader", "CardEncryption", "CWipedHeap", "WalletPasses", logging],
            path: "Tests/ProximityReaderTests/tainted-terminal"),
        // The program that ProximityReaderTests kill while it stores and forwards.
        .executableTarget(
            name: "store-worker", dependencies: ["KioskKit", "ProximityReader", "TestSupport", crypto],
            path: "Tests/ProximityReaderTests/store-worker"),
        .testTarget(
            name: "ProximityReaderTests",
            dependencies: [
                "tainted-terminal", "store-worker", "virtual-reader", "ProximityReader", "CardEncryption",
                "CardReaders",
                "EMVContactless", "SmartCard", "SmartCardPCSC", "SmartCardSimulator", "SmartCardUSB", "TestSupport",
                "USBTestSupport", "Waiting", "WalletPasses", crypto, jwtKit,
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            exclude: ["AppleSurface.txt", "tainted-terminal", "store-worker"]),
        // Third-party style source, and therefore without our settings (below).
        .target(
            name: "IntegrationPatterns", dependencies: ["KioskKit", "ProximityReader"],
            path: "Tests/KioskKitTests/IntegrationPatterns"),
        // The program that KioskKitTests kill while it pays.
        .executableTarget(
            name: "payment-worker",
            dependencies: [
                "CardReaderAdapter", "CardReaders", "CardReceipts", "EMVContactless", "KioskKit", "ProximityReader",
                "SandboxClient",
                "SmartCardSimulator", "SmartCardUSB", "TestSupport", "USBTestSupport",
            ],
            path: "Tests/KioskKitTests/payment-worker"),
        .target(
            name: "KioskTestSupport",
            dependencies: [
                "CardEncryption", "EMVContactless", "KioskKit", "ProximityReader", "SmartCard", "SmartCardSimulator",
                "Waiting", "WalletPasses", crypto, jwtKit,
            ],
            path: "Tests/KioskTestSupport"),
        .testTarget(
            name: "KioskKitTests",
            dependencies: [
                "payment-worker", "psp-sandbox", "ContactlessMetrics", "KioskKit", "KioskTestSupport",
                "IntegrationPatterns", "ProximityReader", "EMVContactless", "SmartCard", "SmartCardSimulator",
                "TestSupport", "Waiting", coreMetrics, crypto,
            ],
            exclude: ["IntegrationPatterns", "payment-worker"]),
        // A camera's driver in the test's process.
        .target(name: "CameraTestSupport", dependencies: ["CV4L2", "Cameras"], path: "Tests/CameraTestSupport"),
        .testTarget(
            name: "CamerasTests",
            dependencies: [
                "CUMockdev", "CV4L2", "CameraTestSupport", "Cameras", "TestSupport", "USBTestSupport", "Waiting",
            ],
            exclude: ["Judges"]),
        // The guide's source as published, and therefore without our settings (below).
        .target(
            name: "JourneyGuide",
            dependencies: ["KioskBridge", .product(name: "OpenCombine", package: "OpenCombine")],
            path: "Tests/KioskBridgeTests/JourneyGuide"),
        .testTarget(
            name: "KioskBridgeTests",
            dependencies: [
                "CInput", "CUMockdev", "CV4L2", "CameraTestSupport", "Cameras", "CardEncryption", "CardReceipts",
                "ComposableCheckout",
                "ContactlessMetrics", "JourneyGuide", "KioskBridge", "KioskKit",
                "KioskPage", "KioskTestSupport", "ProximityReader", "SmartCard", "SmartCardSimulator", "TestSupport",
                "TravelDocument", "USBTestSupport", "Waiting", coreMetrics, crypto,
            ],
            exclude: ["JourneyGuide"]),
        .testTarget(
            name: "KioskBridgeServerTests",
            dependencies: [
                "ContactlessMetrics", "KioskBridge", "KioskBridgeServer", "SmartCard", "TestSupport", "kiosk-host",
                "store-worker", nioCore, nioEmbedded, nioPosix,
            ],
            exclude: ["Judges"]),
        .testTarget(
            name: "CardReaderAdapterTests",
            dependencies: [
                "CardReaderAdapter", "CardReaders", "CardReceipts", "EMVContactless", "KioskKit", "SmartCard",
                "SmartCardSimulator", "SmartCardUSB", "TestSupport", "USBDevices",
                "CardReaderCombine", "CardEncryption", "ProximityReader", "SmartCardPCSC", "USBTestSupport", "Waiting",
                jwtKit,
                .product(name: "OpenCombine", package: "OpenCombine"),
            ]),
        // The program whose memory CheckoutTaintTests search for a card.
        .executableTarget(
            name: "tainted-checkout", dependencies: ["CWipedHeap", "CardEncryption", "ComposableCheckout", logging],
            path: "Tests/ComposableCheckoutTests/tainted-checkout"),
        .testTarget(
            name: "ComposableCheckoutTests",
            dependencies: [
                "CardEncryption", "CardReaderCombine", "CardReceipts", "ComposableCheckout", "SmartCard", "TestSupport",
                "Waiting", "psp-sandbox", "tainted-checkout", flyingFox, flyingSocks,
                .product(name: "OpenCombine", package: "OpenCombine"),
            ],
            exclude: ["Vectors", "tainted-checkout"]),
        .testTarget(
            name: "CardReceiptsTests",
            dependencies: [
                "CUMockdev", "CardReceipts", "EMVContactless", "SmartCard", "SmartCardSimulator",
                "SmartCardSimulatorHosts", "TestSupport", "USBDevices", "USBTestSupport", "Waiting",
            ],
            exclude: ["Judges", "Golden"]),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "SmartCard", "SmartCardTrace", "SmartCardPCSC", "SmartCardPN532", "SmartCardUSB", "SmartCardSimulator",
                "SmartCardSimulatorHosts", "TestSupport", "USBDevices", "USBTestSupport",
                "reader-probe", "virtual-reader",
            ]),
        // The program that takes images with the virtual machine's cameras.
        .executableTarget(
            name: "camera-probe", dependencies: ["Cameras"], path: "Tests/KernelTests/camera-probe"),
        // The Linux kernel, not EMV's kernels.
        .testTarget(
            name: "KernelTests",
            dependencies: [
                "SmartCard", "SmartCardPCSC", "SmartCardUSB", "SmartCardSimulator", "SmartCardSimulatorHosts",
                "TestSupport", "camera-probe", "reader-probe", "virtual-reader",
            ],
            exclude: ["Guest", "camera-probe"]),
        .testTarget(
            name: "ToolTests",
            dependencies: [
                "SmartCard", "SmartCardTrace", "SmartCardSimulator", "SmartCardSimulatorHosts", "TestSupport",
                "USBTestSupport", "ToolReaders", "ToolSupport", "EMVContactless",
                "CardEncryption", "ProximityReader", jwtKit,
                "apdu-trace", "checkout", "first-program", "kiosk", "kiosk-host", "psp-sandbox", "reader-probe",
                "receipt",
                "virtual-reader",
            ],
            exclude: ["verify-oda"]),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets
where ![.plugin, .system].contains(target.type) && !["IntegrationPatterns", "JourneyGuide"].contains(target.name) {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ]
    // In CI.  A newer compiler may warn of more.
    if Context.environment["WARNINGS_AS_ERRORS"] != nil {
        target.swiftSettings?.append(.treatAllWarnings(as: .error))
        target.cSettings = (target.cSettings ?? []) + [.treatAllWarnings(as: .error)]
    }
}

// `ONLY=KioskKitTests swift test` builds and tests one module with its dependencies and nothing else.
if let names = Context.environment["ONLY"] {
    var kept: Set<String> = []
    var next = names.split(separator: ",").map(String.init)
    while let name = next.popLast() {
        guard kept.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else {
            continue
        }
        next += target.dependencies.compactMap { dependency in
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): name
            default: nil
            }
        }
    }
    package.targets.removeAll { !kept.contains($0.name) && $0.type != .plugin }
    package.products.removeAll { product in
        switch product {
        case let library as Product.Library: !kept.isSuperset(of: library.targets)
        case let executable as Product.Executable: !kept.isSuperset(of: executable.targets)
        default: true
        }
    }
}

// The folders of all dependencies, for a build without a network: debian/build has them in a source package.
if let vendored = Context.environment["VENDORED"] {
    package.dependencies = vendored.split(separator: " ").map { .package(path: String($0)) }
}

// The documentation plugin, only for Documentation/build: other users need not fetch it.
if Context.environment["DOCUMENTATION"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.4.0"))
}

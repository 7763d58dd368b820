// swift-tools-version: 6.1
import PackageDescription

/// Set in CI (`WARNINGS_AS_ERRORS=1 swift build`).  It cannot be a command-line flag: SwiftPM compiles dependencies
/// with warnings suppressed, and the compiler refuses the two together.
let warningsAsErrors = Context.environment["WARNINGS_AS_ERRORS"] != nil

let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + (warningsAsErrors ? [.unsafeFlags(["-warnings-as-errors"])] : [])

let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
    name: "swift-contactless",
    products: [
        .library(name: "SmartCard", targets: ["SmartCard"]),
        .library(name: "SmartCardPCSC", targets: ["SmartCardPCSC"]),
        .library(name: "SmartCardPN532", targets: ["SmartCardPN532"]),
        .library(name: "SmartCardUSB", targets: ["SmartCardUSB"]),
        .library(name: "SmartCardTrace", targets: ["SmartCardTrace"]),
        .library(name: "SmartCardSimulator", targets: ["SmartCardSimulator"]),
        .library(name: "SmartCardSimulatorHosts", targets: ["SmartCardSimulatorHosts"]),
        .library(name: "EMVContactless", targets: ["EMVContactless"]),
        .executable(name: "apdu-trace", targets: ["apdu-trace"]),
        .executable(name: "reader-probe", targets: ["reader-probe"]),
        .executable(name: "virtual-reader", targets: ["virtual-reader"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    ],
    targets: [
        // C libraries, each behind one header.
        .systemLibrary(
            name: "CSmartCardPCSC", pkgConfig: "libpcsclite", providers: [.apt(["libpcsclite-dev"])]),
        .systemLibrary(
            name: "CSmartCardUSB", pkgConfig: "libusb-1.0", providers: [.apt(["libusb-1.0-0-dev"])]),
        .systemLibrary(
            name: "CCryptoLegacy", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CUMockdev", pkgConfig: "umockdev-1.0", providers: [.apt(["libumockdev-dev"])]),

        // Libraries.
        .target(name: "SmartCard", dependencies: [logging], swiftSettings: settings),
        .target(
            name: "SmartCardPCSC", dependencies: ["SmartCard", "CSmartCardPCSC"], swiftSettings: settings),
        .target(name: "SmartCardPN532", dependencies: ["SmartCard"], swiftSettings: settings),
        .target(name: "SmartCardTrace", dependencies: ["SmartCard"], swiftSettings: settings),
        .target(
            name: "SmartCardUSB", dependencies: ["SmartCard", "CSmartCardUSB"], swiftSettings: settings),
        .target(
            name: "SmartCardSimulator", dependencies: ["SmartCard", "CCryptoLegacy"],
            resources: [.embedInCode("Cards")], swiftSettings: settings),
        .target(
            name: "SmartCardSimulatorHosts", dependencies: ["SmartCardSimulator", "SmartCard", "CUMockdev"],
            swiftSettings: settings),
        .target(name: "EMVContactless", dependencies: ["SmartCard", "CCryptoLegacy"], swiftSettings: settings),

        // Tools.
        .target(
            name: "ToolSupport",
            dependencies: [
                "SmartCard", "SmartCardPCSC", "SmartCardUSB", "SmartCardSimulator", "EMVContactless", argumentParser,
                logging,
            ],
            path: "Tools/ToolSupport", swiftSettings: settings),
        .executableTarget(
            name: "apdu-trace",
            dependencies: ["ToolSupport", "SmartCardTrace", "SmartCard", "EMVContactless", argumentParser],
            path: "Tools/apdu-trace", swiftSettings: settings),
        .executableTarget(
            name: "reader-probe",
            dependencies: [
                "ToolSupport", "SmartCard", "SmartCardPCSC", "SmartCardUSB", "SmartCardPN532", "SmartCardSimulator",
                "EMVContactless",
                argumentParser, logging,
            ],
            path: "Tools/reader-probe", exclude: ["reader-probe.1"], swiftSettings: settings),
        .executableTarget(
            name: "virtual-reader",
            dependencies: ["SmartCard", "SmartCardSimulator", "SmartCardSimulatorHosts", argumentParser],
            path: "Tools/virtual-reader", swiftSettings: settings),

        // Examples.
        .executableTarget(
            name: "first-program", dependencies: ["SmartCard", "SmartCardPCSC", "EMVContactless"],
            path: "Examples/first-program", swiftSettings: settings),

        // Benchmarks: a part of this package for the sake of the seams that have package access.
        .target(
            name: "CBaseline", dependencies: ["CSmartCardPCSC", "CSmartCardUSB"], path: "Benchmarks/CBaseline"),
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "CBaseline", "SmartCard", "SmartCardPCSC", "SmartCardUSB", "SmartCardSimulator",
                "SmartCardSimulatorHosts", "EMVContactless",
            ],
            path: "Benchmarks/benchmarks", swiftSettings: settings),

        // Tests.
        .target(
            name: "TestSupport", dependencies: ["SmartCard", "SmartCardPN532", "SmartCardSimulator"],
            path: "Tests/TestSupport", swiftSettings: settings),
        .target(
            name: "USBTestSupport",
            dependencies: [
                "SmartCardUSB", "SmartCard", "SmartCardSimulator", "SmartCardSimulatorHosts", "TestSupport",
            ],
            path: "Tests/USBTestSupport", swiftSettings: settings),
        .testTarget(
            name: "SmartCardTests", dependencies: ["SmartCard", logging], swiftSettings: settings),
        .testTarget(
            name: "SmartCardPCSCTests", dependencies: ["SmartCardPCSC", "SmartCard", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "SmartCardPN532Tests",
            dependencies: [
                "SmartCardPN532", "SmartCard", "SmartCardPCSC", "SmartCardSimulator", "TestSupport", "virtual-reader",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SmartCardUSBTests",
            dependencies: [
                "SmartCardUSB", "SmartCard", "SmartCardPN532", "SmartCardSimulator", "SmartCardSimulatorHosts",
                "EMVContactless", "TestSupport", "USBTestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SmartCardTraceTests",
            dependencies: ["SmartCardTrace", "SmartCard", "SmartCardSimulator", "EMVContactless"],
            swiftSettings: settings),
        .testTarget(
            name: "SmartCardSimulatorTests", dependencies: ["SmartCardSimulator", "SmartCard", "TestSupport"],
            exclude: ["mint-test-keys"], swiftSettings: settings),
        .testTarget(
            name: "EMVContactlessTests", dependencies: ["EMVContactless", "SmartCard", "SmartCardSimulator"],
            exclude: ["Rules", "Minting", "Vectors"], swiftSettings: settings),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "SmartCard", "SmartCardTrace", "SmartCardPCSC", "SmartCardUSB", "SmartCardSimulator", "TestSupport",
                "USBTestSupport",
                "virtual-reader",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "KernelTests",
            dependencies: [
                "SmartCard", "SmartCardPCSC", "SmartCardUSB", "SmartCardSimulator", "SmartCardSimulatorHosts",
                "TestSupport", "reader-probe", "virtual-reader",
            ],
            exclude: ["Guest"], swiftSettings: settings),
        .testTarget(
            name: "ToolTests",
            dependencies: [
                "SmartCard", "SmartCardTrace", "SmartCardSimulator", "SmartCardSimulatorHosts", "TestSupport",
                "USBTestSupport",
                "apdu-trace", "first-program", "reader-probe", "virtual-reader",
            ],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

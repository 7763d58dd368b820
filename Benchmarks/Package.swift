// swift-tools-version: 6.1
import PackageDescription

let package = Package(
    name: "Benchmarks",
    dependencies: [.package(name: "swift-contactless", path: "..")],
    targets: [
        .systemLibrary(name: "CLibraries", pkgConfig: "libpcsclite", providers: [.apt(["libpcsclite-dev"])]),
        .target(name: "CBaseline", dependencies: ["CLibraries"]),
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "CBaseline",
                .product(name: "SmartCard", package: "swift-contactless"),
                .product(name: "SmartCardPCSC", package: "swift-contactless"),
                .product(name: "SmartCardUSB", package: "swift-contactless"),
                .product(name: "SmartCardSimulator", package: "swift-contactless"),
                .product(name: "SmartCardSimulatorHosts", package: "swift-contactless"),
            ],
            path: "Sources/Benchmarks"),
    ],
    swiftLanguageModes: [.v6]
)

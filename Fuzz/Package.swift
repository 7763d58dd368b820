// swift-tools-version: 6.2
import PackageDescription

// libFuzzer targets, one file each; what each does with its input stands in FuzzTargets.swift and TraceFuzzTargets.swift,
// which the tests have too.
// Fuzz/run builds and runs them: without its flags there is no fuzzer to link with.
func product(_ name: String) -> Target.Dependency { .product(name: name, package: "swift-contactless") }

// KioskBridge stands on a database and on tokens, which take longer to build than all the rest: not for Fuzz/replay.
let hasBridge = Context.environment["ONLY"].map { $0.split(separator: ",").contains("KioskBridge") } ?? true
let bridge: [Target] =
    hasBridge
    ? [
        .executableTarget(name: "bridge", dependencies: ["Fuzzing", product("KioskBridge"), product("SmartCard")]),
        .executableTarget(
            name: "frames",
            dependencies: [
                "Fuzzing", product("KioskBridge"), product("KioskBridgeServer"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio"),
            ]),
    ] : []

let package = Package(
    name: "fuzz",
    dependencies: [
        .package(name: "swift-contactless", path: ".."),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
    ],
    targets: [
        .target(
            name: "Fuzzing",
            dependencies: [
                "CardEncryption", "EMVContactless", "SmartCard", "SmartCardSimulator", "SmartCardTrace",
                "TravelDocument",
                "TravelDocumentImages", "WalletPasses",
            ].map(product) + [.product(name: "Crypto", package: "swift-crypto")])
    ]
        + [
            "transaction", "card-inspector", "tlv", "card-file", "import", "trace", "redaction", "travel-document",
            "travel-document-chip", "travel-document-image", "passes",
        ].map {
            .executableTarget(name: $0, dependencies: ["Fuzzing"])
        } + bridge)

// swift-tools-version: 6.2
import PackageDescription

// libFuzzer targets, one file each; what each does with its input stands in FuzzTargets.swift and TraceFuzzTargets.swift,
// which the tests have too.
// Fuzz/run builds and runs them: without its flags there is no fuzzer to link with.
func product(_ name: String) -> Target.Dependency { .product(name: name, package: "swift-contactless") }

let package = Package(
    name: "fuzz",
    dependencies: [
        .package(name: "swift-contactless", path: ".."),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
    ],
    targets: [
        .target(
            name: "Fuzzing",
            dependencies: [
                "CardEncryption", "EMVContactless", "KioskBridge", "SmartCard", "SmartCardSimulator", "SmartCardTrace",
                "TravelDocument", "TravelDocumentImages", "WalletPasses",
            ].map(product) + [.product(name: "Crypto", package: "swift-crypto")])
    ]
        + [
            "transaction", "card-inspector", "tlv", "card-file", "import", "trace", "redaction", "travel-document",
            "travel-document-chip", "travel-document-image", "passes", "bridge",
        ].map {
            .executableTarget(name: $0, dependencies: ["Fuzzing"])
        })

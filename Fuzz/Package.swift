// swift-tools-version: 6.1
import PackageDescription

// libFuzzer targets, one file each.  Fuzz/run builds and runs them: without its flags there is no fuzzer to link with.
func target(_ name: String, _ modules: String...) -> Target {
    .executableTarget(
        name: name, dependencies: ["Fuzzing"] + modules.map { .product(name: $0, package: "swift-contactless") })
}

let package = Package(
    name: "fuzz",
    dependencies: [.package(name: "swift-contactless", path: "..")],
    targets: [
        .target(name: "Fuzzing"),
        target("transaction", "EMVContactless", "SmartCard"),
        target("card-inspector", "EMVContactless", "SmartCard"),
        target("tlv", "SmartCard", "EMVContactless"),
        target("card-file", "SmartCardSimulator"),
    ])

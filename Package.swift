// swift-tools-version: 6.0

import PackageDescription

let sources = "foreign/swift/Sources"
let tests = "foreign/swift/Tests"

// Each is a program to start from; every one runs in the tests.
let examples = [
    "getting-started", "producer", "consumer-group", "reader-with-checkpoints", "key-partitioning", "headers",
    "encryption", "tls",
].map { name in
    Target.executableTarget(name: "iggy-example-\(name)", dependencies: ["Iggy"], path: "examples/swift/\(name)")
}

let package = Package(
    name: "iggy",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [.library(name: "Iggy", targets: ["Iggy"])],
    targets: [
        // The native library, which pkg-config finds: see foreign/swift/README.md.
        .systemLibrary(name: "CIggy", path: "\(sources)/CIggy", pkgConfig: "iggy-swift"),
        // Written by scripts/swift bindings.
        .target(name: "IggyNative", dependencies: ["CIggy"], path: "\(sources)/IggyNative"),
        .target(name: "Iggy", dependencies: ["IggyNative"], path: "\(sources)/Iggy"),
        .testTarget(
            name: "IggyTests", dependencies: ["Iggy", "iggy-leaving"] + examples.map { .target(name: $0.name) },
            path: "\(tests)/IggyTests"),
        .executableTarget(name: "iggy-leaving", dependencies: ["Iggy"], path: "\(tests)/Leaving"),
        .executableTarget(name: "iggy-bdd-swift", dependencies: ["Iggy"], path: "bdd/swift"),
    ] + examples,
    swiftLanguageModes: [.v6]
)

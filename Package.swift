// swift-tools-version: 6.0

import PackageDescription

let sources = "foreign/swift/Sources"

let examples = [
    "GettingStarted", "Producing", "ConsumerGroup", "ReaderWithCheckpoints", "KeyPartitioning", "UsingHeaders",
    "Encrypting", "UsingTLS",
]

let package = Package(
    name: "iggy",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [.library(name: "Iggy", targets: ["Iggy"])],
    targets: [
        // The native library, found by pkg-config: see foreign/swift/README.md.
        .systemLibrary(name: "CIggy", path: "\(sources)/CIggy", pkgConfig: "iggy-swift"),
        // Written by scripts/swift bindings.
        .target(name: "IggyNative", dependencies: ["CIggy"], path: "\(sources)/IggyNative"),
        .target(name: "Iggy", dependencies: ["IggyNative"], path: "\(sources)/Iggy"),
        .executableTarget(name: "iggy-bdd-swift", dependencies: ["Iggy"], path: "bdd/swift"),
        .testTarget(name: "IggyTests", dependencies: ["Iggy"], path: "foreign/swift/Tests/IggyTests"),
    ],
    swiftLanguageModes: [.v6]
)

// swift-tools-version: 6.2
import PackageDescription

// A separate package, like an app's: it measures the library as users get it, across module boundaries.

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "CipherStore", path: "..")],
    targets: [
        // SQLite's C interface, for an app that calls it directly.
        .systemLibrary(
            name: "AppSQLite", path: "AppSQLite", pkgConfig: "sqlcipher", providers: [.apt(["libsqlcipher-dev"])]),
        .executableTarget(
            name: "Bench",
            dependencies: [
                "AppSQLite",
                .product(name: "CipherSQLite", package: "CipherStore"),
                .product(name: "CipherStore", package: "CipherStore"),
            ],
            path: "Bench",
            swiftSettings: [.treatAllWarnings(as: .error)]),
    ]
)

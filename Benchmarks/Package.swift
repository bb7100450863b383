// swift-tools-version: 6.2
import PackageDescription

// A package of its own, as an app's is: what is measured is what users get of the library, across the borders of its
// modules.

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "CipherStore", path: "..")],
    targets: [
        // SQLite's C interface, as an app has it that calls it itself.
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

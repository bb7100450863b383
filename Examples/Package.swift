// swift-tools-version: 6.2
import PackageDescription

// A package of its own, as an app's is: it sees what CipherStore makes public, and nothing else.

let examples = ["RawC", "OwnWrapper", "NumberedSteps", "DeclaredTables", "Template", "TableVersions", "AppVersions"]

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "CipherStore", path: "..")],
    targets: [
        // What an app that calls SQLite's C interface has already.
        .systemLibrary(
            name: "AppSQLite", path: "AppSQLite", pkgConfig: "sqlcipher", providers: [.apt(["libsqlcipher-dev"])]),
        .target(
            name: "Support", dependencies: ["AppSQLite", .product(name: "CipherStore", package: "CipherStore")],
            path: "Support"),
    ]
        + examples.map { name in
            .executableTarget(
                name: name,
                dependencies: ["Support", "AppSQLite", .product(name: "CipherStore", package: "CipherStore")],
                path: name,
                swiftSettings: [.treatAllWarnings(as: .error)])
        }
)

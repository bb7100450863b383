// swift-tools-version: 6.2
import PackageDescription

// A separate package, like an app's: it sees only the public declarations of CipherStore.

// NotesWithGRDB is not a target, because GRDB is not fetched.
let stores = [
    "RawC", "NumberedSteps", "DeclaredTables", "Template", "TableVersions", "AppVersions", "FromGRDB",
    "FromSQLiteSwift", "WhileOpen",
]
let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]
let store = Target.Dependency.product(name: "CipherStore", package: "CipherStore")
let storeGRDB = Target.Dependency.product(name: "CipherStoreGRDB", package: "CipherStore")
let conversion = Target.Dependency.product(name: "DatabaseConversion", package: "CipherStore")

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v13)],
    dependencies: [.package(name: "CipherStore", path: "..")],
    targets: [
        // The module of an app that calls SQLite's C interface.
        .systemLibrary(
            name: "AppSQLite", path: "AppSQLite", pkgConfig: "sqlcipher", providers: [.apt(["libsqlcipher-dev"])]),
        .target(name: "Support", dependencies: ["AppSQLite", conversion], path: "Support", swiftSettings: strict),
        .target(name: "StoreSupport", dependencies: ["Support", store], path: "StoreSupport", swiftSettings: strict),
        .executableTarget(
            name: "OwnWrapper", dependencies: ["Support", "AppSQLite", conversion], path: "OwnWrapper",
            swiftSettings: strict),
        // The module of an app whose other parts use the system's SQLite.
        .systemLibrary(
            name: "AppPlainSQLite", path: "TwoEngines/AppPlainSQLite", pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"])]),
        .executableTarget(
            name: "TwoEngines", dependencies: ["AppPlainSQLite", "Support", conversion], path: "TwoEngines",
            exclude: ["AppPlainSQLite"],
            swiftSettings: strict),
        .executableTarget(name: "Notes", dependencies: [store], path: "Notes", swiftSettings: strict),
        .target(name: "GRDBStandIn", path: "GRDBStandIn"),
        .executableTarget(
            name: "Names", dependencies: ["GRDBStandIn", "StoreSupport", "Support", store], path: "Names",
            swiftSettings: strict),
    ]
        + stores.map { name in
            .executableTarget(
                name: name,
                dependencies: ["StoreSupport", "Support", "AppSQLite", store] + (name == "FromGRDB" ? [storeGRDB] : []),
                path: name, swiftSettings: strict)
        }
)

// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

// Which SQLCipher is linked is up to the platform that is built for: on Apple platforms the package SQLCipher.swift, whose
// binaries are for them alone, on Linux the system's library, as pkg-config finds it. The machine that builds decides only
// whether the package must be fetched: a Mac may build for either, and any other machine for Linux.
// CIPHERSTORE_SQLCIPHER=package takes the package on every platform: Scripts/packaged puts one for Linux in its place.
let takesPackage = Context.environment["CIPHERSTORE_SQLCIPHER"] == "package"
#if os(macOS)
    let fetchesPackage = true
#else
    let fetchesPackage = takesPackage
#endif
let applePlatforms: [Platform] = [.macOS, .macCatalyst, .iOS, .tvOS, .watchOS, .visionOS]
var dependencies: [Package.Dependency] = []
var engine: [Target.Dependency] = []
if fetchesPackage {
    dependencies.append(.package(url: "https://github.com/sqlcipher/SQLCipher.swift.git", from: "4.10.0"))
    engine.append(
        .product(
            name: "SQLCipher", package: "SQLCipher.swift",
            condition: takesPackage ? nil : .when(platforms: applePlatforms)))
}
if !takesPackage {
    engine.append(.target(name: "CCipherEngineLibrary", condition: .when(platforms: [.linux])))
}

let package = Package(
    name: "CipherStore",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9)],
    products: [
        .library(name: "CipherStore", targets: ["CipherStore"]),
        .library(name: "DatabaseConversion", targets: ["CipherDatabaseConversion", "CipherSecretServiceKeys"]),
        .library(name: "CipherSQLite", targets: ["CipherSQLite"]),
        .library(name: "CipherStoreGRDB", targets: ["CipherStoreGRDB"]),
        .library(name: "CipherStoreTestKit", targets: ["CipherStoreTestKit"]),
        .executable(name: "cipherstore", targets: ["CipherStoreCLI"]),
    ],
    dependencies: dependencies,
    targets: [
        .systemLibrary(
            name: "CCipherEngineLibrary",
            pkgConfig: "sqlcipher",
            providers: [.apt(["libsqlcipher-dev"]), .brew(["sqlcipher"])]
        ),
        .systemLibrary(
            name: "CCipherCryptoLibrary",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]
        ),
        .target(
            name: "CCipherEngine",
            dependencies: engine,
            cSettings: [.define("SQLITE_HAS_CODEC")]
        ),
        .target(
            name: "CCipherCrypto",
            dependencies: [.target(name: "CCipherCryptoLibrary", condition: .when(platforms: [.linux]))]
        ),
        .target(name: "CCipherSystem"),
        .target(name: "CipherPlatform", swiftSettings: strict),
        .target(name: "CipherErrors", dependencies: ["CipherPlatform"], swiftSettings: strict),
        .target(
            name: "CipherPrimitives",
            dependencies: ["CCipherCrypto", "CipherErrors", "CipherPlatform"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherSystemFiles",
            dependencies: ["CCipherSystem", "CipherErrors", "CipherPlatform", "CipherPrimitives"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherSQLite",
            dependencies: [
                "CCipherEngine",
                "CCipherSystem",
                "CipherErrors",
                "CipherPlatform",
                "CipherPrimitives",
                "CipherSystemFiles",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CipherSQLText",
            dependencies: ["CipherSQLite"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherCatalog",
            dependencies: ["CipherErrors", "CipherSQLText", "CipherSQLite"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherSQLiteFormat",
            dependencies: ["CipherErrors", "CipherPlatform", "CipherPrimitives", "CipherSQLite", "CipherSystemFiles"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherRecovery",
            dependencies: [
                "CipherCatalog", "CipherErrors", "CipherSQLText", "CipherSQLite", "CipherSQLiteFormat",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CipherPageOpening",
            dependencies: ["CipherErrors", "CipherPrimitives", "CipherSQLite", "CipherSQLiteFormat"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherPageSealing",
            dependencies: [
                "CCipherEngine",
                "CipherErrors",
                "CipherPlatform",
                "CipherPrimitives",
                "CipherSQLite",
                "CipherSystemFiles",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CipherKeyProviders",
            dependencies: ["CipherErrors", "CipherPlatform", "CipherPrimitives", "CipherSQLite", "CipherSystemFiles"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherSecretServiceKeys",
            dependencies: [
                "CipherErrors",
                "CipherKeyProviders",
                "CipherPlatform",
                "CipherPrimitives",
                "CipherSQLite",
                "CipherSystemFiles",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CipherConfigurationText",
            dependencies: ["CipherErrors", "CipherSystemFiles"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherHistory",
            dependencies: ["CipherCatalog", "CipherErrors", "CipherSQLText", "CipherSQLite"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherDatabaseConversion",
            dependencies: [
                "CipherCatalog",
                "CipherErrors",
                "CipherHistory",
                "CipherKeyProviders",
                "CipherPageOpening",
                "CipherPageSealing",
                "CipherPlatform",
                "CipherPrimitives",
                "CipherRecovery",
                "CipherSQLText",
                "CipherSQLite",
                "CipherSQLiteFormat",
                "CipherSystemFiles",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CipherSchemaMigration",
            dependencies: [
                "CipherCatalog",
                "CipherConfigurationText",
                "CipherErrors",
                "CipherHistory",
                "CipherPlatform",
                "CipherSQLText",
                "CipherSQLite",
                "CipherSystemFiles",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CipherPriorSystems",
            dependencies: [
                "CipherCatalog",
                "CipherDatabaseConversion",
                "CipherErrors",
                "CipherHistory",
                "CipherSQLText",
                "CipherSQLite",
                "CipherSQLiteFormat",
                "CipherSchemaMigration",
                "CipherSystemFiles",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CipherStore",
            dependencies: [
                "CipherCatalog",
                "CipherConfigurationText",
                "CipherDatabaseConversion",
                "CipherErrors",
                "CipherHistory",
                "CipherKeyProviders",
                "CipherPlatform",
                "CipherPrimitives",
                "CipherPriorSystems",
                "CipherSQLText",
                "CipherSQLite",
                "CipherSchemaMigration",
                "CipherSecretServiceKeys",
                "CipherSystemFiles",
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CipherStoreTestKit",
            dependencies: [
                "CipherErrors",
                "CipherKeyProviders",
                "CipherPlatform",
                "CipherSQLite",
                "CipherSchemaMigration",
                "CipherStore",
            ],
            swiftSettings: strict
        ),
        // A separate product, because it needs Foundation on every platform.
        .target(name: "CipherStoreGRDB", dependencies: ["CipherSQLite"], swiftSettings: strict),
        .executableTarget(
            name: "CipherStoreCLI",
            dependencies: [
                "CCipherSystem",
                "CipherConfigurationText",
                "CipherDatabaseConversion",
                "CipherErrors",
                "CipherHistory",
                "CipherKeyProviders",
                "CipherPlatform",
                "CipherPrimitives",
                "CipherSQLite",
                "CipherSchemaMigration",
                "CipherSecretServiceKeys",
                "CipherStore",
                "CipherSystemFiles",
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherLegacyChat",
            dependencies: ["CipherSQLite"],
            path: "Examples/CipherLegacyChat",
            swiftSettings: strict
        ),
        .target(
            name: "CipherTestSupport",
            dependencies: [
                "CCipherSubjectShims", "CipherErrors", "CipherKeyProviders", "CipherPrimitives", "CipherSQLite",
                "CipherSQLiteFormat",
            ],
            path: "Tests/CipherTestSupport",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherCrashSubject",
            dependencies: [
                "CCipherSubjectShims",
                "CipherDatabaseConversion",
                "CipherErrors",
                "CipherPageSealing",
                "CipherPlatform",
                "CipherSQLite",
                "CipherStore",
                "CipherSystemFiles",
                "CipherTestSupport",
            ],
            path: "Tests/CipherCrashSubject",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherAppLife",
            dependencies: ["CipherPlatform", "CipherStore"],
            path: "Tests/CipherAppLife",
            swiftSettings: strict
        ),
        .target(
            name: "CCipherSubjectShims",
            dependencies: ["CCipherCrypto", "CCipherEngine"],
            path: "Tests/CCipherSubjectShims"
        ),
        .executableTarget(
            name: "CipherCrashTrials",
            dependencies: ["CCipherSystem", "CipherPlatform"],
            path: "Tests/CipherCrashTrials",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherMutator",
            dependencies: ["CipherPlatform", "CipherSQLite", "CipherStore", "CipherTestSupport"],
            path: "Tests/CipherMutator",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherFixtureMaker",
            dependencies: ["CipherPlatform", "CipherSQLite", "CipherTestSupport"],
            path: "Tests/CipherFixtureMaker",
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherPrimitivesTests",
            dependencies: ["CipherPrimitives"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherSQLiteTests",
            dependencies: ["CCipherEngine", "CipherErrors", "CipherSQLite", "CipherTestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherStoreTests",
            dependencies: [
                "CCipherEngine",
                "CCipherSystem",
                "CipherCatalog",
                "CipherConfigurationText",
                "CipherDatabaseConversion",
                "CipherErrors",
                "CipherHistory",
                "CipherKeyProviders",
                "CipherMutator",
                "CipherPageOpening",
                "CipherPageSealing",
                "CipherPlatform",
                "CipherPrimitives",
                "CipherPriorSystems",
                "CipherSQLText",
                "CipherSQLite",
                "CipherSQLiteFormat",
                "CipherSchemaMigration",
                "CipherStore",
                "CipherStoreGRDB",
                "CipherStoreTestKit",
                "CipherSystemFiles",
                "CipherTestSupport",
            ],
            exclude: ["Hostile"],
            resources: [.copy("Fixtures")],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherLockHolder",
            dependencies: ["CipherPlatform", "CipherSQLite", "CipherTestSupport"],
            path: "Tests/CipherLockHolder",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherSchedules",
            dependencies: ["CipherStore", "CipherTestSupport"],
            path: "Tests/CipherSchedules",
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherStoreCLITests",
            dependencies: [
                "CCipherSubjectShims",
                "CipherDatabaseConversion",
                "CipherErrors",
                "CipherLockHolder",
                "CipherPlatform",
                "CipherSQLite",
                "CipherStoreCLI",
                "CipherTestSupport",
            ],
            swiftSettings: strict
        ),
    ]
)

// CIPHERSTORE_PORTABLE=1 builds on Linux what Apple's systems and old kernels get: without leases, O_TMPFILE, O_PATH, /proc,
// renameat2, sync_file_range and extended attributes, with a request for F_FULLFSYNC before each fsync, and with Foundation
// instead of FoundationEssentials. Scripts/test --portable uses it, in a separate build folder.
if Context.environment["CIPHERSTORE_PORTABLE"] == "1" {
    for target in package.targets {
        target.swiftSettings?.append(.define("CIPHERSTORE_PORTABLE"))
        if target.name == "CCipherSystem" { target.cSettings = [.define("CIPHERSTORE_PORTABLE")] }
    }
}

// CIPHERSTORE_OPTIMIZED=1 optimizes everything but the tests in debug builds too, where the tests spend much of their time.
// It is not the default, because Swift refuses such flags in a package that others depend on by version.
if Context.environment["CIPHERSTORE_OPTIMIZED"] == "1" {
    let flags = ["-O", "-whole-module-optimization", "-num-threads", "2"]
    for target in package.targets where target.swiftSettings != nil && target.type != .test {
        target.swiftSettings?.append(.unsafeFlags(flags, .when(configuration: .debug)))
    }
}

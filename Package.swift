// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

// SQLCipher comes from the system on Linux and from the SQLCipher.swift package on Apple platforms.
// The Apple branch is not built in this repository's CI. The manifest is evaluated on the machine that builds,
// so on Linux nothing is fetched.
#if os(Linux)
    let dependencies: [Package.Dependency] = []
    let sqlcipher: [Target.Dependency] = ["CSQLCipher"]
    let sqlcipherTargets: [Target] = [
        .systemLibrary(
            name: "CSQLCipher",
            pkgConfig: "sqlcipher",
            providers: [.apt(["libsqlcipher-dev"]), .brew(["sqlcipher"])]
        )
    ]
#else
    let dependencies: [Package.Dependency] = [
        .package(url: "https://github.com/sqlcipher/SQLCipher.swift.git", from: "4.6.1")
    ]
    let sqlcipher: [Target.Dependency] = [.product(name: "SQLCipher", package: "SQLCipher.swift")]
    let sqlcipherTargets: [Target] = []
#endif

let package = Package(
    name: "CipherStore",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9)],
    products: [
        .library(name: "CipherStore", targets: ["CipherStore"]),
        .library(name: "CipherStoreTestKit", targets: ["CipherStoreTestKit"]),
        .executable(name: "cipherstore", targets: ["CipherStoreCLI"]),
    ],
    dependencies: dependencies,
    targets: sqlcipherTargets + [
        .systemLibrary(
            name: "COpenSSL",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]
        ),
        .target(
            name: "CSQLCipherShims",
            dependencies: sqlcipher + ["COpenSSL"],
            cSettings: [.define("SQLITE_HAS_CODEC")]
        ),
        .target(name: "CSystemShims"),
        .target(
            name: "CipherSQLite",
            dependencies: sqlcipher + ["CSQLCipherShims", "COpenSSL"],
            cSettings: [.define("SQLITE_HAS_CODEC")],
            swiftSettings: strict
        ),
        .target(
            name: "CipherStore",
            dependencies: ["CipherSQLite", "CSystemShims"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherStoreTestKit",
            dependencies: ["CipherStore", "CipherSQLite"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherStoreCLI",
            dependencies: ["CipherStore", "CipherSQLite", "CSystemShims"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "LegacyChat",
            dependencies: ["CipherSQLite"],
            path: "Examples/LegacyChat",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "Bench",
            dependencies: sqlcipher + ["CipherStore", "CipherSQLite"],
            path: "Benchmarks",
            cSettings: [.define("SQLITE_HAS_CODEC")],
            swiftSettings: strict
        ),
        .target(
            name: "TestSupport",
            dependencies: ["CipherStore", "CipherSQLite"],
            path: "Tests/TestSupport",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CrashSubject",
            dependencies: ["CipherStore", "CipherSQLite", "CSubjectShims", "TestSupport"],
            path: "Tests/CrashSubject",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "AppLife",
            dependencies: ["CipherStore"],
            path: "Tests/AppLife",
            swiftSettings: strict
        ),
        .target(
            name: "CSubjectShims",
            dependencies: ["CSQLCipherShims", "COpenSSL"],
            path: "Tests/CSubjectShims",
            cSettings: [.define("SQLITE_HAS_CODEC")]
        ),
        .executableTarget(
            name: "CrashTrials",
            dependencies: ["CSystemShims"],
            path: "Tests/CrashTrials",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "Mutator",
            dependencies: ["CipherStore", "CipherSQLite", "TestSupport"],
            path: "Tests/Mutator",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "FixtureMaker",
            dependencies: ["CipherSQLite", "TestSupport"],
            path: "Tests/FixtureMaker",
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherSQLiteTests",
            dependencies: ["CipherSQLite", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherStoreTests",
            dependencies: ["CipherStore", "CipherStoreTestKit", "COpenSSL", "CSystemShims", "Mutator", "TestSupport"],
            exclude: ["Hostile"],
            resources: [.copy("Fixtures")],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "LockHolder",
            dependencies: ["CipherSQLite", "TestSupport"],
            path: "Tests/LockHolder",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "Schedules",
            dependencies: ["CipherStore", "CipherSQLite", "TestSupport"],
            path: "Tests/Schedules",
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherStoreCLITests",
            dependencies: ["CipherStoreCLI", "LockHolder", "TestSupport"],
            swiftSettings: strict
        ),
    ]
)

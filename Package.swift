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
        .target(
            name: "CipherPrimitives",
            dependencies: ["CCipherCrypto"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherSQLite",
            dependencies: ["CCipherEngine", "CipherPrimitives"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherStore",
            dependencies: ["CipherPrimitives", "CipherSQLite", "CCipherSystem"],
            swiftSettings: strict
        ),
        .target(
            name: "CipherStoreTestKit",
            dependencies: ["CipherStore", "CipherSQLite"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "CipherStoreCLI",
            dependencies: ["CipherStore", "CipherSQLite", "CCipherSystem"],
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
            dependencies: ["CCipherEngine", "CipherStore", "CipherSQLite"],
            path: "Benchmarks",
            swiftSettings: strict
        ),
        .target(
            name: "TestSupport",
            dependencies: ["CipherPrimitives", "CipherStore", "CipherSQLite"],
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
            dependencies: ["CCipherCrypto", "CCipherEngine"],
            path: "Tests/CSubjectShims"
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
            name: "CipherPrimitivesTests",
            dependencies: ["CipherPrimitives"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherSQLiteTests",
            dependencies: ["CipherSQLite", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "CipherStoreTests",
            dependencies: ["CipherStore", "CipherStoreTestKit", "CCipherSystem", "Mutator", "TestSupport"],
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

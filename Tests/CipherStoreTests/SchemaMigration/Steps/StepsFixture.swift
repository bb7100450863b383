internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A plaintext database of an app that updates in steps, beside the folder of its steps.
struct StepsFixture {
    let folder: TemporaryFolder
    var configuration: Configuration

    /// - Parameter example: A configuration in `Config`.
    init(example: String) throws {
        folder = try TemporaryFolder()
        configuration = try Configuration(contentsOf: Repository.examples.appending(path: example))
    }

    /// Uses the test's own steps, as files.
    ///
    /// - Parameter files: The content of the property lists by name; JSON if it begins with a bracket.
    init(_ files: [String: String], version: String = "3", extra: String = "") throws {
        folder = try TemporaryFolder()
        configuration = try Self.configuration(files, in: folder, version: version, extra: extra)
    }

    static func configuration(
        _ files: [String: String], in folder: TemporaryFolder, version: String, extra: String = ""
    ) throws -> Configuration {
        try FileManager.default.createDirectory(
            at: folder.url.appending(path: "steps"), withIntermediateDirectories: true)
        for (name, text) in files { try folder.write(text, to: "steps/\(name)") }
        try folder.write(
            #"{"dbName": "app.db", "dbVersion": \#(version), "updates": {"directory": "steps"}\#(extra)}"#,
            to: "app.json")
        return try Configuration(contentsOf: folder.url.appending(path: "app.json"))
    }

    var path: String { folder.path(configuration.databaseName) }

    /// Lets `body` write the legacy database.
    func write(_ body: (Connection) throws -> Void) throws {
        try LegacyFile.write(path, body)
    }

    func open() throws -> OpenReport {
        try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).run().report
    }

    func plan() throws -> Plan {
        try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).plan().schema
    }

    /// Reads the database, as plaintext if it is not encrypted.
    func read<Result>(isEncrypted: Bool = true, _ body: (Connection) throws -> Result) throws -> Result {
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
        try connection.proveReadable()
        return try body(connection)
    }

    /// Returns the schema of a fresh install with the same configuration.
    func freshSchema() throws -> [String] {
        let other = try TemporaryFolder()
        let opening = try StoreOpening(
            configuration: configuration, directory: other.url.path(percentEncoded: false),
            provider: TestKeys.provider())
        #expect(try opening.run().report.launch == .firstInstall)
        let connection = try Connection(
            path: other.path(configuration.databaseName), mode: .readWrite, key: TestKeys.raw(),
            settings: CipherSettings())
        defer { connection.close() }
        return try LegacyStepsApp.schema(connection)
    }

    /// Returns the error of opening, which must leave every byte of the folder unchanged.
    func refusal() throws -> StoreError {
        let before = try FolderDigest(folder.url, ignoring: ["-shm"])
        let error = try storeError { try open() }
        #expect(try FolderDigest(folder.url, ignoring: ["-shm"]) == before)
        return try #require(error)
    }
}

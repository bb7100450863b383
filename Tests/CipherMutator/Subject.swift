internal import CipherStore
import CipherTestSupport
import Foundation

/// The code that runs in a separate process, where a trap, a hang or a signal can be observed from outside.
enum Subject {
    /// The encryption upgrade.
    ///
    /// Prints the outcome, or the error's code.
    static func upgrade(_ path: String, _ provider: any KeyProvider = TestKeys.provider()) throws {
        var options = ConversionOptions()
        options.busyTimeout = .milliseconds(200)
        options.upgradeTimeout = .seconds(5)
        print(try EncryptionUpgrade(path: path, provider: provider, options: options).run().outcome.rawValue)
    }

    /// Plans a schema for which the rows of a table must be read.
    ///
    /// Encryption is off, so that the plan is for the unchanged file. Prints how the plan ended, or the error's code.
    static func plan(_ path: String) throws {
        _ = try opening(
            path,
            [
                DeclaredTable.Column(name: "a", definition: "TEXT NOT NULL UNIQUE CHECK (a <> 'x')"),
                DeclaredTable.Column(name: "added", definition: "INTEGER NOT NULL"),
            ]
        ).plan()
        print("planned")
    }

    /// Opens the unchanged file under a schema for which its tables are rebuilt, without reading any row first.
    static func migrate(_ path: String) throws {
        _ = try opening(path, [DeclaredTable.Column(name: "a", definition: "DEFAULT 'another'")]).run()
        print("migrated")
    }

    /// Encryption is off.
    private static func opening(_ path: String, _ columns: [DeclaredTable.Column]) throws -> StoreOpening {
        let file = URL(filePath: path)
        let configuration = Configuration(
            databaseName: file.lastPathComponent, version: 99, encryption: .init(isEnabled: false),
            schema: .tables(["t", "u", "f"].map { DeclaredTable(name: $0, columns: columns) }))
        return try StoreOpening(
            configuration: configuration, directory: file.deletingLastPathComponent().path(percentEncoded: false),
            provider: TestKeys.provider())
    }

    /// Reads two files with plain SQL, and prints where they differ, or nothing.
    static func compare(_ first: String, _ second: String, isEncrypted: Bool) throws {
        let left = try dump(first, nil)
        let right = try dump(second, isEncrypted ? TestKeys.raw() : nil)
        guard left != right else { return }
        // On a damaged page, SQLite may read beyond the page's end, and two readings of the same file differ.
        if try !isEncrypted && areEqual(first, second) { return }
        print(left.differences(from: right).joined(separator: "\n"))
    }

    /// Returns whether two plaintext files are equal except for the journal mode and the counters on page 1.
    ///
    /// They have no log any more, because the last connection that closes a file merges its log.
    private static func areEqual(_ first: String, _ second: String) throws -> Bool {
        let files = try [first, second].map { path in
            var bytes = try Data(contentsOf: URL(filePath: path))
            for fields in [18..<20, 24..<28, 92..<100] where fields.upperBound <= bytes.count {
                bytes.resetBytes(in: fields)
            }
            return bytes
        }
        return files[0] == files[1]
    }

    private static func dump(_ path: String, _ key: CipherKey?) throws -> DatabaseDump {
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: CipherSettings()) }
        connection.allowDoubleQuotedStrings()
        return try DatabaseDump(connection, computed: false, noting: true)
    }
}

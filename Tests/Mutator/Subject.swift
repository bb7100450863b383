import CipherSQLite
import CipherStore
import TestSupport

/// What runs in a process of its own, for a trap, a hang or a signal is to be seen from outside.
enum Subject {
    /// The encryption upgrade.
    ///
    /// Prints the outcome, or the error's code.
    static func upgrade(_ path: String, _ provider: any KeyProvider = TestKeys.provider()) throws {
        var options = EncryptionUpgrade.Options()
        options.busyTimeout = 200
        options.lockTimeout = 5
        print(try EncryptionUpgrade(path: path, provider: provider, options: options).run().outcome.rawValue)
    }

    /// Reads two files by plain SQL and prints where they differ, or nothing.
    static func compare(_ first: String, _ second: String, isEncrypted: Bool) throws {
        let left = try dump(first, nil)
        let right = try dump(second, isEncrypted ? TestKeys.raw() : nil)
        if left != right { print(left.differences(from: right).joined(separator: "\n")) }
    }

    private static func dump(_ path: String, _ key: CipherKey?) throws -> DatabaseDump {
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: CipherSettings()) }
        connection.allowDoubleQuotedStrings()
        return try DatabaseDump(connection, computed: false, noting: true)
    }
}

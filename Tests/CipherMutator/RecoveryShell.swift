import CipherSQLite
import CipherTestSupport
import Foundation

/// A command-line tool of SQLite or SQLCipher that has `.recover`.
struct RecoveryShell {
    let path: String

    /// Uses the given shell, or looks for one: that of `Scripts/engine --command-line 4.6.1`, then the system's.
    ///
    /// Debian 12's `sqlite3` is built without the parts that `.recover` needs.
    ///
    /// - Returns: `nil` if no shell has the command.
    init?(_ path: String?) throws {
        let built = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path(percentEncoded: false)
        let here = FileManager.default.currentDirectoryPath
        let unpacked = [here, built + "/../../.."].map { $0 + "/.build/engines/4.6.1/usr/bin/sqlcipher" }
        let found = try (path.map { [$0] } ?? unpacked + ["/usr/bin/sqlcipher", "/usr/bin/sqlite3"]).first {
            try Self.run(
                "\"$0\" :memory: 'CREATE TABLE t(a)' .recover 2>/dev/null | grep -q 'CREATE TABLE'", [$0])
        }
        guard let found else { return nil }
        self.path = found
    }

    /// Returns the file that the shell recovers, including `lost_and_found`, or nothing if it fails.
    func recovered(_ database: String, to output: String) throws -> [RowPlaces.Key: String] {
        let command = "timeout 120 \"$0\" \"$1\" .recover 2>/dev/null | timeout 120 \"$0\" \"$2\" >/dev/null 2>&1"
        _ = try Self.run(command, [path, database, output])
        guard let connection = try? Connection(path: output, mode: .readOnly) else { return [:] }
        defer { connection.close() }
        return (try? RowPlaces.rows(connection)) ?? [:]
    }

    /// Runs a command with the shell as `$0`, and returns whether it succeeded.
    private static func run(_ command: String, _ arguments: [String]) throws -> Bool {
        let path = arguments[0]
        var environment: [String: String] = [:]
        // An engine that is not installed has its library in the same folder.
        let folder = URL(filePath: path).deletingLastPathComponent().deletingLastPathComponent().appending(path: "lib")
        let libraries = (try? FileManager.default.subpathsOfDirectory(atPath: folder.path(percentEncoded: false))) ?? []
        if let library = libraries.first(where: { $0.hasSuffix("libsqlcipher.so") }), path.contains(".build/engines") {
            environment["LD_LIBRARY_PATH"] = folder.appending(path: library).deletingLastPathComponent()
                .path(percentEncoded: false)
        }
        return try ChildProcess("/bin/sh", ["-c", command] + arguments, environment: environment).wait().status == 0
    }
}

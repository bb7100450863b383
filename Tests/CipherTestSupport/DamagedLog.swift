public import CipherSQLite
import Foundation

/// A log with commits that SQLite does not read.
public enum DamagedLog {
    /// Commits a statement that changes one page six times, so that the log holds these commits and nothing else.
    public static func commit(_ statement: String, _ connection: Connection) throws {
        _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
        _ = try connection.value(Int.self, "PRAGMA wal_autocheckpoint = 0")
        _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
        for _ in 1...6 { try connection.execute(SQL(text: statement)) }
    }

    /// Damages the third frame of a log, so that SQLite does not read the last four commits.
    public static func damage(_ path: String) throws {
        var bytes = try Data(contentsOf: URL(filePath: path))
        let pageSize = bytes[8..<12].reduce(0) { $0 << 8 | Int($1) }
        bytes[32 + 2 * (24 + pageSize) + 24 + 100] ^= 1
        try bytes.write(to: URL(filePath: path))
    }
}

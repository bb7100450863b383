import Foundation

/// The row of the benchmark for types other than numbers and text.
struct Event: Codable {
    var id: Int64
    var uid: UUID
    var at: Date
    var content: Data

    /// Creates the table of events, and fills it.
    static func table(rows: Int) -> String {
        """
        CREATE TABLE event(id INTEGER PRIMARY KEY, uid TEXT, at REAL, content BLOB);
        WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < \(rows))
        INSERT INTO event SELECT n, printf('%08X-0000-4000-8000-%012X', n, n), 1.6e9 + n / 8.0, randomblob(64) FROM number;
        """
    }
}

internal import CipherErrors
internal import CipherSQLite

/// Runs lines of SQL on one connection, which does not wait for locks, and answers each with a line.
public final class SQLLines {
    private let connection: Connection
    private var cursor: Statement?

    /// Opens a database.
    ///
    /// - Parameter keyByte: The byte that a raw key consists of; `nil` for a plaintext file.
    public init(_ path: String, keyByte: UInt8?) throws {
        connection = try Connection(path: path, mode: .readWrite, busyTimeout: .zero)
        if let keyByte { try connection.setKey(TestKeys.raw(keyByte), settings: CipherSettings()) }
    }

    /// Returns `ok` and the first column of the rows, or `error` and SQLite's code.
    ///
    /// For `half` and a query, one row is read, and the cursor is kept.
    public func answer(_ line: String) -> String {
        do {
            guard line.hasPrefix("half ") else {
                return try (["ok"] + connection.values(Value.self, SQL(text: line)).map(text)).joined(separator: " ")
            }
            let statement = try Statement(SQL(text: String(line.dropFirst(5))), on: connection)
            cursor = statement
            return try statement.step() ? "ok" : "none"
        } catch let error as DatabaseError {
            return "error \(error.code)"
        } catch {
            return "error"
        }
    }

    /// Closes the connection.
    public func close() {
        cursor = nil
        connection.close()
    }

    private func text(_ value: Value) -> String {
        switch value {
        case .integer(let number): String(number)
        case .text(let text): text
        default: "?"
        }
    }
}

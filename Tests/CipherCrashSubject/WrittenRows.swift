import CipherPlatform
internal import CipherSQLite
import Foundation

/// Rows whose number determines their contents, and which are acknowledged on standard output.
enum WrittenRows {
    static let table = "written"

    static func body(_ id: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(truncatingIfNeeded: id), count: 100 + id * 37 % 3_000)
    }

    /// The numbers of all rows of the table.
    ///
    /// - Throws: ``Failure`` if a row is not intact.
    static func ids(_ connection: Connection) throws -> [Int] {
        var ids: [Int] = []
        try connection.forEachRow("SELECT id, body FROM \(identifier: table) ORDER BY id") { row in
            let id = try row.get(Int.self, at: 0)
            guard try row.get([UInt8].self, at: 1) == body(id) else {
                throw Failure(text: "row \(id) of \(table) is damaged", status: 1)
            }
            ids.append(id)
        }
        return ids
    }

    /// Writes without a buffer, because the output must be written before the next kill.
    static func acknowledge(_ id: Int) {
        let line = Array("\(id)\n".utf8)
        var sent = 0
        while sent < line.count {
            let part = line[sent...].withUnsafeBytes { CipherPlatform.write(1, $0.baseAddress, $0.count) }
            guard part > 0 else { exit(4) }
            sent += part
        }
    }
}

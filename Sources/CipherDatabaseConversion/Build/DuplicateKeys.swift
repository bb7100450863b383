internal import CipherErrors
internal import CipherSQLite

/// Rows of the original that a UNIQUE index forbids, found when the index is filled from the rows.
///
/// Only a damaged index lets such rows in, and no copy of it could be sound.
struct DuplicateKeys {
    private let index: CopySkeleton.Index
    /// How many keys stand in more than one row; `nil` where SQL cannot list the index's columns.
    private let count: Int?

    init(_ index: CopySkeleton.Index, _ connection: Connection) throws {
        self.index = index
        var columns: [SQL] = []
        var canBeListed = true
        try connection.forEachRow("PRAGMA main.index_list(\(index.table))") { row in
            if try row.get(SchemaName.self, at: 1) == index.name, try row.get(Int.self, at: 4) != 0 {
                canBeListed = false
            }
        }
        try connection.forEachRow("PRAGMA main.index_xinfo(\(index.name))") { row in
            guard try row.get(Int.self, at: 5) != 0 else { return }
            guard let name = try row.get(SchemaName?.self, at: 2) else { return canBeListed = false }
            // Missing collations are refused before.
            let collation = try row.get(SchemaName.self, at: 4)
            columns.append("old.\(name) COLLATE \(collation)")
        }
        let keys = columns.joined(by: ", ")
        let isKey = columns.map { "\($0) IS NOT NULL" as SQL }.joined(by: " AND ")
        count =
            canBeListed && !columns.isEmpty
            ? try connection.value(
                Int.self,
                """
                SELECT count(*) FROM (
                    SELECT 1 FROM main.\(index.table) AS old NOT INDEXED WHERE \(isKey)
                    GROUP BY \(keys) HAVING count(*) > 1)
                """) : nil
    }

    /// The refusal.
    func error(_ path: String, _ underlying: DatabaseError) -> StoreError {
        let keys = count.map { $0 == 1 ? "1 key occurs" : "\($0) keys occur" } ?? "some keys occur"
        return StoreError(
            .corrupt, path: path,
            "index \(index.name) of table \(index.table) is damaged: it is unique, but \(keys) more than once",
            advice: "remove the duplicate rows, or drop the index, and try again; nothing was changed",
            underlying: underlying)
    }
}

internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite

/// Rows of the original that violate a UNIQUE index, found when the index is filled from the rows.
///
/// Only a damaged index lets such rows in, and no copy of the index could be correct.
struct DuplicateKeys {
    private let index: CopySkeleton.Index
    /// The number of keys that occur in more than one row; `nil` if SQL cannot list the index's columns.
    private let count: Int?

    init(_ index: CopySkeleton.Index, _ connection: Connection) throws {
        self.index = index
        let isPartial = try IndexState.read(table: index.table, from: connection).contains {
            $0.name == index.name && $0.isPartial
        }
        let parts = try IndexState.parts(of: index.name, connection).filter(\.isKey)
        // Schemas with missing collations have already been refused.
        let columns = parts.compactMap { part -> SQL? in
            part.name.map { "old.\($0) COLLATE \(part.collation ?? "BINARY")" }
        }
        var keys = WrittenIndex(list: columns, condition: nil)
        if isPartial || columns.count < parts.count {
            guard let written = try WrittenIndex(index.name, connection), written.list.count == parts.count else {
                count = nil
                return
            }
            keys = written
        }
        let isKey = ([keys.condition].compactMap { $0 } + keys.list.map { "\($0) IS NOT NULL" }).joined(by: " AND ")
        let list = keys.list.joined(by: ", ")
        do {
            count = try connection.value(
                Int.self,
                """
                SELECT count(*) FROM (
                    SELECT 1 FROM main.\(index.table) AS old NOT INDEXED WHERE \(isKey)
                    GROUP BY \(list) HAVING count(*) > 1)
                """)
        } catch let error as DatabaseError where error.extendedCode == DatabaseError.generic {
            // A definition may contain expressions that a query may not.
            count = nil
        }
    }

    /// Returns the error with which the database is refused.
    func error(_ path: String, _ underlying: DatabaseError) -> StoreError {
        let keys = count.map { $0 == 1 ? "1 key occurs" : "\($0) keys occur" } ?? "some keys occur"
        return StoreError(
            .corrupt, path: path,
            "index \(index.name) of table \(index.table) is damaged: it requires unique keys, but \(keys) more than "
                + "once",
            advice: "remove the duplicate rows, or drop the index, and try again", changed: .nothing,
            underlying: underlying)
    }
}

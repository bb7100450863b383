internal import CipherCatalog
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
        let isPartial = try IndexState.read(table: index.table, from: connection).contains {
            $0.name == index.name && $0.isPartial
        }
        let parts = try IndexState.parts(of: index.name, connection).filter(\.isKey)
        // Missing collations are refused before.
        let columns = parts.compactMap { part -> SQL? in
            part.name.map { "old.\($0) COLLATE \(part.collation ?? "BINARY")" }
        }
        let canBeListed = !isPartial && columns.count == parts.count
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
            advice: "remove the duplicate rows, or drop the index, and try again", changed: .nothing,
            underlying: underlying)
    }
}

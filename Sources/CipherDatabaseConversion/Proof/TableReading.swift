internal import CipherErrors
package import CipherSQLite

/// The queries with which the proof reads the rows of one table: by the position of the columns, never by their names.
///
/// The builder names columns. If a name meant something other than intended, it would mean the same to a proof that
/// also used it, and both would agree on a wrong value.
package struct TableReading: Sendable {
    let table: SchemaName
    /// The name of a primary key that is the table's own b-tree.
    let key: SchemaName?
    let columns: TableColumns
    /// The name of the rowid, if SQL can name it.
    let rowid: String?
    /// The table, in a form that SQLite reads from the table's own b-tree and not from an index that holds the same
    /// columns.
    private let source: SQL

    /// - Parameters:
    ///   - key: The name of a primary key that is the table's own b-tree, which makes the table WITHOUT ROWID.
    ///   - mayLackRowID: Whether the table may be WITHOUT ROWID. Only a separate statement can determine that.
    package init(_ table: SchemaName, key: SchemaName?, mayLackRowID: Bool, _ connection: Connection) throws {
        self.table = table
        self.key = key
        // For a table WITHOUT ROWID, NOT INDEXED still allows an index that holds all columns.
        source = key.map { "main.\(table) INDEXED BY \($0)" } ?? "main.\(table) NOT INDEXED"
        columns = try TableColumns(table, connection)
        rowid = try mayLackRowID ? Self.rowid(of: table, columns, connection) : columns.rowidAlias
    }

    /// Checks that the table's name leads to the b-tree of its entry in the schema, and to nothing else.
    ///
    /// SQLite uses the definition text of an entry, while comparisons by name use the name in the entry. If the two
    /// differ, one table would be compared twice and another never.
    ///
    /// - Throws: ``StoreError`` with the code `corrupt`.
    func check(root: Int64, _ connection: Connection) throws {
        guard try connection.rootPages(of: "SELECT 1 FROM \(source)") == [root] else {
            throw StoreError.damaged(
                connection.path, "schema entry \(table) defines a table with a different name")
        }
    }

    /// SQLite's limit for the number of columns of a result, unless SQLite was built with a different one.
    ///
    /// Source: SQLite, "Implementation Limits", section 2.
    private static let widestResult = 2_000

    /// Whether a row is too wide to be read together with its rowid.
    var isWide: Bool { columns.count >= Self.widestResult }

    /// Returns a query for every stored column of each row, in order.
    ///
    /// Computed columns are omitted, because they may need functions that only the app has. In SQLite, the only way to
    /// refer to columns by number is to give all columns of a subquery new names.
    ///
    /// - Parameters:
    ///   - rowid: The name of the rowid if it should come first.
    ///   - condition: The clause that follows the table's name.
    func rows(rowid: String? = nil, _ condition: SQL = "") -> SQL {
        let first = SQL(text: rowid.map { "\($0), " } ?? "")
        let all: SQL = "SELECT \(first)* FROM \(source) \(condition)"
        guard columns.stored.count < columns.count else { return all }
        return selecting(
            (rowid == nil ? [] : ["r"]) + columns.stored.map { Self.name($0.position) },
            from: all, hasRowID: rowid != nil)
    }

    /// Returns a query for the row of a rowid as ``rows(rowid:_:)`` reads it, with NULL in place of all other columns.
    func row(_ rowid: String, _ condition: SQL, only wanted: Set<Int32>) -> SQL {
        let list = columns.stored.enumerated().map { index, column in
            wanted.contains(Int32(index + 1)) ? Self.name(column.position) : "NULL"
        }
        let first = SQL(text: rowid)
        return selecting(
            ["r"] + list, from: "SELECT \(first), * FROM \(source) \(condition)", hasRowID: true)
    }

    /// Returns a query for the rowid of each row.
    func rowids(_ rowid: String, _ condition: SQL = "") -> SQL {
        "SELECT \(SQL(text: rowid)) FROM \(source) \(condition)"
    }

    /// Returns a query for an expression over one stored column, whose name is passed to `expression`.
    func expression(_ expression: (String) -> String, of column: TableColumns.Stored, _ condition: SQL) -> SQL {
        selecting(
            [expression(Self.name(column.position))],
            from: "SELECT * FROM \(source) \(condition)", hasRowID: false)
    }

    /// Selects from a subquery whose columns have their numbers as names.
    private func selecting(_ list: [String], from subquery: SQL, hasRowID: Bool) -> SQL {
        let names = (hasRowID ? ["r"] : []) + (0..<columns.count).map(Self.name)
        let head = SQL(text: "WITH numbered(\(names.joined(separator: ", "))) AS (")
        return "\(head)\(subquery)) SELECT \(SQL(text: list.joined(separator: ", "))) FROM numbered"
    }

    private static func name(_ position: Int) -> String { "c\(position)" }

    /// Returns a name for the rowid; `nil` for a table WITHOUT ROWID, or whose columns use all of its names.
    private static func rowid(
        of table: SchemaName, _ columns: TableColumns, _ connection: Connection
    ) throws -> String? {
        guard let alias = columns.rowidAlias else { return nil }
        do {
            _ = try Statement("SELECT \(SQL(text: alias)) FROM main.\(table) LIMIT 0", on: connection)
            return alias
        } catch let error as DatabaseError where error.extendedCode == DatabaseError.generic {
            // Only this column can be missing, because the table's own columns were read before.
            return nil
        }
    }
}

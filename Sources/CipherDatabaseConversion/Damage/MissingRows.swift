internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite

/// Rows for which an index has entries although its table does not contain them.
///
/// Either the table lost the rows or the index kept entries of deleted rows. The file does not show which.
struct MissingRows: Sendable {
    let index: SchemaName
    let table: SchemaName
    let count: Int64

    /// The finding, as a sentence.
    var description: String {
        let rows = count == 1 ? "1 row that is" : "\(count) rows that are"
        return "index \(index) has entries for \(rows) not in table \(table): the table may have lost "
            + (count == 1 ? "this row" : "these rows")
    }

    /// Searches for missing rows in the indexes that can be read completely and whose entries are in order.
    ///
    /// - Parameter onlyPartial: Whether to read only partial indexes, whose entries `integrity_check` does not count.
    static func all(in connection: Connection, onlyPartial: Bool) throws -> [MissingRows] {
        let isUTF8 = try connection.value(String.self, "PRAGMA encoding") == "UTF-8"
        let trees = try IndexTree.all(connection)
        return try trees.filter { !onlyPartial || $0.state.isPartial }.compactMap { tree in
            guard let count = try tree.countMissingRows(connection), count > 0,
                try tree.isOrdered(isUTF8: isUTF8, connection)
            else { return nil }
            return MissingRows(index: tree.state.name, table: tree.table, count: count)
        }
    }
}

extension IndexTree {
    /// Returns the number of entries that refer to a row that the table does not contain; `nil` if SQL cannot determine
    /// that, or the index cannot be read.
    fileprivate func countMissingRows(_ connection: Connection) throws -> Int64? {
        guard let query = try missingRows(connection) else { return nil }
        // Old engines read through an index that is no smaller than its table only to obtain its order.
        for query in [query, try "\(query) ORDER BY \(order(connection))"] {
            let count: Int64? = try reading(connection) {
                let allowed: Set = [root, tableRoot]
                let roots = try connection.rootPages(of: query)
                guard roots.contains(root), allowed.isSuperset(of: roots) else { return nil }
                var count: Int64 = 0
                try connection.forEachRow(query) { _ in count += 1 }
                return count
            }
            if let count { return count }
        }
        return nil
    }

    /// Returns the order of the entries.
    private func order(_ connection: Connection) throws -> SQL {
        let written = try WrittenIndex(state.name, connection)?.list ?? []
        return try state.parts(connection).filter(\.isKey).enumerated().compactMap { place, part -> SQL? in
            let expression = written.indices.contains(place) ? written[place] : nil
            guard let value = part.name.map({ "e.\($0)" as SQL }) ?? expression else { return nil }
            let end: SQL = part.isDescending ? " DESC" : ""
            return "\(value) COLLATE \(part.collation ?? "BINARY")\(end)"
        }.joined(by: ", ")
    }

    private func missingRows(_ connection: Connection) throws -> SQL? {
        let identity: SQL
        let rows: SQL
        if let key {
            // Schemas with missing collations have already been refused.
            identity = try key.parts(connection).filter(\.isKey).compactMap { part -> SQL? in
                part.name.map { "r.\($0) COLLATE \(part.collation ?? "BINARY") IS e.\($0)" }
            }.joined(by: " AND ")
            rows = "main.\(table) AS r INDEXED BY \(key.name)"
        } else {
            guard let rowid = try TableReading(table, key: nil, mayLackRowID: false, connection).rowid else {
                return nil
            }
            let name = SQL(text: rowid)
            identity = "r.\(name) = e.\(name)"
            rows = "main.\(table) AS r NOT INDEXED"
        }
        var condition: SQL = ""
        if state.isPartial {
            guard let written = try WrittenIndex(state.name, connection)?.condition else { return nil }
            condition = "\(written) AND "
        }
        return """
            SELECT 1 FROM main.\(table) AS e INDEXED BY \(state.name)
            WHERE \(condition)NOT EXISTS (SELECT 1 FROM \(rows) WHERE \(identity))
            """
    }

    /// Returns whether the entries ascend, as far as SQL can list them and their order is known.
    fileprivate func isOrdered(isUTF8: Bool, _ connection: Connection) throws -> Bool {
        let reading = try TableReading(table, key: key?.name, mayLackRowID: key != nil, connection)
        guard
            let layout = try IndexLayout(
                state.name, isUnique: state.isUnique, isPartial: state.isPartial, reading, connection),
            let comparison = try IndexComparison(layout, root: root, isUTF8: isUTF8, reading, connection)
        else { return true }
        return try self.reading(connection) { try comparison.isOrdered(connection) } ?? false
    }

    /// Runs `body`.
    ///
    /// Returns `nil` if the tree is damaged, or SQL cannot read it.
    private func reading<Result>(_ connection: Connection, _ body: () throws -> Result?) throws -> Result? {
        do {
            return try connection.standingInForAbsentFunctions { try connection.computingBySchema(body) }
        } catch let error as DatabaseError
            where error.isCorrupt || error.isTooBig || error.code == DatabaseError.generic
        {
            return nil
        }
    }
}

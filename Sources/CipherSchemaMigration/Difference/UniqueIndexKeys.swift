internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

extension ScratchDatabase {
    /// Returns the unique indexes among some indexes of a table, each with its key.
    ///
    /// The table is created here, because the collation of a key depends on the table's columns. The key of an index that
    /// SQLite does not accept here is its text.
    func uniqueKeys(
        of indexes: [DatabaseState.Object], on table: TableShape
    ) throws -> [(index: DatabaseState.Object, key: TableShape.Key)] {
        var keys = indexes.filter(\.isUniqueIndex).map { index in
            let text = TableShape.Key.Part(
                column: SQLName(index.sql), isDescending: false, collation: SQLName("BINARY"))
            return (index: index, key: TableShape.Key(origin: .statement, parts: [text]))
        }
        guard !keys.isEmpty else { return [] }
        try ignoringRefusals {
            try creating(table.text, name: table.name) {
                for (place, (index, _)) in keys.enumerated() {
                    try ignoringRefusals {
                        try connection.execute(SQL(text: index.sql))
                        keys[place].key = try key(of: index)
                    }
                }
            }
        }
        return keys
    }

    private func ignoringRefusals(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch is DatabaseError {
            // For example, a function or collation is not registered.
            return
        }
    }

    private func key(of index: DatabaseState.Object) throws -> TableShape.Key {
        let text = UniqueIndex(index)
        let parts = try IndexState.parts(of: SchemaName(bytes: index.name.utf8), connection).filter(\.isKey)
        return TableShape.Key(
            origin: .statement,
            parts: parts.enumerated().map { number, part in
                // An expression has no name, so its text identifies it.
                let expression = text?.parts.indices.contains(number) == true ? text?.parts[number] : index.sql
                return TableShape.Key.Part(
                    column: part.name.map { SQLName(of: $0) } ?? SQLName("(\(NormalizedSQL(expression ?? "").text))"),
                    isDescending: part.isDescending, collation: SQLName(of: part.collation ?? ""))
            }, isPartial: text?.condition != nil)
    }
}

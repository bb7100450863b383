internal import CCipherEngine
internal import CipherErrors

/// Inserting, updating and deleting Encodable values, with a property for each column, matched by name.
///
/// A property that is `nil` is stored as NULL. Dates and UUIDs have the forms in the connection's
/// ``Connection/columnForms``; enumerations are stored as their raw values; structures, arrays and dictionaries as JSON
/// text. A number in a column of type TEXT is stored as text and cannot be read back as a number. A column without a
/// property gets the table's default in an insertion, and stays unchanged in an update.
extension Connection {
    /// Inserts a value as a new row.
    ///
    /// - Returns: The rowid; if an INTEGER PRIMARY KEY was `nil`, this is the key that SQLite chose. `nil` for a table
    ///   without rowids, for a view, and if a trigger prevented the row from being inserted.
    /// - Throws: ``DatabaseError``, with `SQLITE_CONSTRAINT` if the value conflicts with an existing row;
    ///   `EncodingError` for a value that cannot be a row, such as NaN, or a date that the form of
    ///   ``ColumnForms`` cannot express.
    @discardableResult
    public func insert(_ value: some Encodable, into table: String) throws -> Int64? {
        let row = try RowEncoder(value, forms: columnForms)
        try execute(row, .insert, table)
        return insertedRowID(table)
    }

    /// Returns the rowid of the row that the last statement inserted into a table; `nil` if it did not insert a row with
    /// a rowid.
    private func insertedRowID(_ table: String) -> Int64? {
        // Only tables without rowids have no column of this name, unless they declare one.
        guard changes > 0,
            sqlite3_table_column_metadata(handle, nil, table, "_rowid_", nil, nil, nil, nil, nil) == SQLITE_OK
        else { return nil }
        return lastInsertedRowID
    }

    /// Inserts a value as a new row, or updates the row with its primary key.
    ///
    /// A conflict in another unique column is an error, as in ``insert(_:into:)``.
    ///
    /// - Throws: The same errors as ``insert(_:into:)``; ``StoreError`` with the code `misuse` if the table has no
    ///   primary key, or the value has no property for a column of the key.
    public func upsert(_ value: some Encodable, into table: String) throws {
        let row = try RowEncoder(value, forms: columnForms)
        // No row can have NULL as its key.
        guard try !keyValues(of: row, in: table).contains(.null) else { return try execute(row, .insert, table) }
        guard !Engine.current.hasUpsert else { return try execute(row, .upsert, table) }
        try execute(row, .update, table)
        if changes == 0 { try execute(row, .insert, table) }
    }

    /// Updates the row that has a value's primary key.
    ///
    /// - Returns: Whether there is such a row.
    /// - Throws: ``DatabaseError``; `EncodingError` for a value that cannot be a row; ``StoreError`` with the code
    ///   `misuse` if the table has no primary key, or the value has no property for a column of the key, or `nil` in
    ///   such a property.
    @discardableResult
    public func update(_ value: some Encodable, in table: String) throws -> Bool {
        let row = try RowEncoder(value, forms: columnForms)
        try refuseNull(row, table)
        try execute(row, .update, table)
        return changes > 0
    }

    /// Deletes the row that has a value's primary key.
    ///
    /// - Returns: Whether there was such a row.
    /// - Throws: The same errors as ``update(_:in:)``.
    @discardableResult
    public func delete(_ value: some Encodable, from table: String) throws -> Bool {
        let row = try RowEncoder(value, forms: columnForms)
        try refuseNull(row, table)
        try execute(row, .delete, table)
        return changes > 0
    }

    /// Inserts a value as a new row, and returns the row as inserted, with defaults and with changes by BEFORE
    /// triggers.
    ///
    /// - Throws: The same errors as ``insert(_:into:)`` and ``rows(_:_:)``; also ``DatabaseError`` if the
    ///   engine is older than SQLite 3.35 and the table has no rowid.
    public func insert<Inserted: Decodable>(
        _ value: some Encodable, into table: String, returning type: Inserted.Type
    ) throws -> Inserted {
        let row = try RowEncoder(value, forms: columnForms)
        let statement = try self.statement(.insert, row.names, table)
        let inserted: Inserted?
        if Engine.current.hasReturning {
            inserted = try self.row(type, SQL(text: statement.sql + " RETURNING *", values: row.values))
        } else {
            try execute(SQL(text: statement.sql, values: row.values))
            inserted = try insertedRowID(table).flatMap {
                try self.row(type, "SELECT * FROM \(identifier: table) WHERE rowid = \($0)")
            }
        }
        guard let inserted else {
            throw DatabaseError(
                extendedCode: DatabaseError.misuse, message: "a trigger prevented the row from being inserted",
                sql: statement.sql,
                path: path)
        }
        return inserted
    }

    // MARK: Statements

    /// A change to a row.
    enum RowChange: Hashable {
        case insert, upsert, update, delete
    }

    /// A statement for values with the same properties.
    struct ValueStatement {
        /// The properties for which the statement was created.
        let names: [ExactName]
        let sql: String
        /// The index of the value for each parameter; `nil` if the parameters are in the order of the properties.
        let order: [Int]?
    }

    private func execute(_ row: RowEncoder, _ change: RowChange, _ table: String) throws {
        let statement = try statement(change, row.names, table)
        try execute(SQL(text: statement.sql, values: statement.order?.map { row.values[$0] } ?? row.values))
    }

    private func statement(_ change: RowChange, _ names: [String], _ table: String) throws -> ValueStatement {
        let key = ValueStatementKey(change: change, table: ExactName(table))
        // Whether a table's key is still the same is known only while SQLite reports schema changes.
        if isLent && tellsOfSchemaChanges || change == .insert, let known = valueStatements[key],
            known.names.elementsEqual(names, by: { $0.isSpelled($1) })
        {
            return known
        }
        let statement = try make(change, names, table)
        valueStatements[key] = statement
        return statement
    }

    private func make(_ change: RowChange, _ names: [String], _ table: String) throws -> ValueStatement {
        let table = (quoted: SQL.quoted(column: table), name: table)
        let columns = names.map(SQL.quoted(column:))
        let exact = names.map(ExactName.init)
        func insertion() -> String {
            columns.isEmpty
                ? "INSERT INTO \(table.quoted) DEFAULT VALUES"
                : "INSERT INTO \(table.quoted)(\(columns.joined(separator: ", "))) VALUES "
                    + "(\(columns.map { _ in "?" }.joined(separator: ", ")))"
        }
        guard change != .insert else { return ValueStatement(names: exact, sql: insertion(), order: nil) }
        let all = names.indices
        let keys = try keyIndexes(of: names, in: table.name)
        // A table may consist of key columns only; then an update only finds the row.
        let rest = all.count == keys.count ? keys : all.filter { !keys.contains($0) }
        let match = keys.map { "\(columns[$0]) = ?" }.joined(separator: " AND ")
        switch change {
        case .insert, .upsert:
            let conflict = keys.map { columns[$0] }.joined(separator: ", ")
            let assignments = rest.map { "\(columns[$0]) = excluded.\(columns[$0])" }.joined(separator: ", ")
            return ValueStatement(
                names: exact, sql: insertion() + " ON CONFLICT(\(conflict)) DO UPDATE SET \(assignments)", order: nil)
        case .update:
            let assignments = rest.map { "\(columns[$0]) = ?" }.joined(separator: ", ")
            return ValueStatement(
                names: exact, sql: "UPDATE \(table.quoted) SET \(assignments) WHERE \(match)", order: rest + keys)
        case .delete:
            return ValueStatement(names: exact, sql: "DELETE FROM \(table.quoted) WHERE \(match)", order: keys)
        }
    }

    // MARK: Keys

    /// Returns the positions of the primary key's columns among the properties.
    private func keyIndexes(of names: [String], in table: String) throws -> [Int] {
        var keys: [String] = []
        try forEachRow("PRAGMA main.table_info(\(identifier: table))") { row in
            if try row.get(Int.self, at: 5) > 0 { keys.append(try row.get(at: 1)) }
        }
        guard !keys.isEmpty else {
            throw StoreError(
                .misuse, path: path, "the table \(table) does not exist, or it has no primary key",
                advice: "check the table's name; for a table without a primary key, use an SQL statement with a WHERE "
                    + "clause instead")
        }
        return try keys.map { key in
            guard
                let index = names.firstIndex(where: { ExactName(key).isSpelled($0) })
                    ?? names.firstIndex(where: { TableAccess.folded($0) == TableAccess.folded(key) })
            else {
                throw StoreError(
                    .misuse, path: path,
                    "the value has no property for \(key), which is part of the primary key of \(table)",
                    advice: "add the property, or use an SQL statement with a WHERE clause instead")
            }
            return index
        }
    }

    private func keyValues(of row: RowEncoder, in table: String) throws -> [Value] {
        // The values of a DELETE are in the order of the key.
        try statement(.delete, row.names, table).order?.map { row.values[$0] } ?? row.values
    }

    private func refuseNull(_ row: RowEncoder, _ table: String) throws {
        guard try keyValues(of: row, in: table).contains(.null) else { return }
        throw StoreError(
            .misuse, path: path, "the value's primary key is nil, so it does not identify a row of \(table)",
            advice: "insert the value, or set its key")
    }
}

/// The key by which a statement for values is found.
struct ValueStatementKey: Hashable {
    let change: Connection.RowChange
    let table: ExactName
}

internal import CipherErrors
internal import CipherSQLText
package import CipherSQLite

/// A schema, object by object, in a form that does not depend on how its SQL is formatted.
///
/// SQLite's own tables, CipherStore's, and those in which virtual tables store their data are omitted.
package struct SchemaDescription: Sendable, Equatable, Codable {
    /// A table, view, index or trigger.
    package struct Object: Sendable, Codable {
        /// The type of the object: `table`, `view`, `index` or `trigger`.
        package var type: String
        package var name: String
        /// The columns of an ordinary table.
        package var columns: [Column]?
        /// The checksum of the SQL's normal form; for an ordinary table, of everything except the columns.
        package var checksum: String
    }

    /// A column of an ordinary table.
    package struct Column: Sendable, Codable {
        package var name: String
        /// The type and constraints in normal form.
        package var definition: String
    }

    /// The objects, in the order of the schema.
    package var objects: [Object]

    /// Creates a description of a database's schema; a read-only connection suffices.
    package init(of connection: Connection) throws {
        var rows: [(type: String, name: String, table: String, sql: String)] = []
        // The indexes of UNIQUE and PRIMARY KEY have no separate SQL text; their table's text contains them.
        try connection.forEachRow(
            "SELECT type, name, tbl_name, sql FROM main.sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        ) { row in
            rows.append(
                (
                    try row.get(at: 0), try row.get(SchemaName.self, at: 1).recorded,
                    try row.get(SchemaName.self, at: 2).recorded, try row.get(at: 3)
                ))
        }
        let shadows = ShadowTables(tables: rows.filter { $0.type == "table" }.map { ($0.name, $0.sql) })
        objects = rows.filter { row in
            [row.name, row.table].allSatisfy { name in
                !SQLName(name).isOfSQLite && !SQLName(name).isOfCipherStore && !shadows.contains(name)
            }
        }.map { Object(type: $0.type, name: $0.name, sql: $0.sql) }
    }

    /// Returns the differences between this schema and an expected one, object by object; empty if there are none.
    package func differences(from expected: SchemaDescription) -> [SchemaMismatch] {
        expected.objects.flatMap { wanted -> [SchemaMismatch] in
            guard let found = object(like: wanted) else { return [SchemaMismatch(.missing, wanted)] }
            return found.differences(from: wanted)
        } + objects.filter { expected.object(like: $0) == nil }.map { SchemaMismatch(.unexpected, $0) }
    }

    private func object(like other: Object) -> Object? {
        objects.first { $0.type == other.type && SQLName($0.name) == SQLName(other.name) }
    }

    /// Returns whether there are no differences.
    package static func == (left: SchemaDescription, right: SchemaDescription) -> Bool {
        left.differences(from: right).isEmpty
    }
}

extension SchemaName {
    /// The name itself if it is valid UTF-8; otherwise a form that shows its bytes, because two names must not become
    /// one.
    fileprivate var recorded: String { String(utf8: bytes) ?? description }
}

extension SchemaDescription.Object {
    fileprivate init(type: String, name: String, sql: String) {
        self.init(type: type, name: name, columns: nil, checksum: "")
        var sum = Checksum()
        if type == "table", !ShadowTables.isVirtual(sql), let table = TableText(sql) {
            columns = table.columns.map { column in
                let definition = SQLTokens(column.text).tokens.dropFirst()
                return .init(name: column.column ?? "", definition: NormalizedSQL(definition).text)
            }
            // Sorted, because the order of constraints and options has no meaning.
            let options = SQLTokens(table.suffix).tokens.split { $0.isKeyword(",") }
            let rest = table.constraints.map { NormalizedSQL($0.text).text } + options.map { NormalizedSQL($0).text }
            for part in rest.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) { sum.add(part) }
        } else {
            sum.add(NormalizedSQL(sql).text)
        }
        checksum = sum.text
    }

    fileprivate func differences(from wanted: Self) -> [SchemaMismatch] {
        guard let columns, let wantedColumns = wanted.columns else {
            let isAlike = checksum == wanted.checksum && (columns == nil) == (wanted.columns == nil)
            return isAlike ? [] : [SchemaMismatch(.differs, self)]
        }
        var differences: [SchemaMismatch] = []
        for column in wantedColumns {
            guard let found = columns.first(where: { $0.isNamed(like: column) }) else {
                differences.append(SchemaMismatch(.missing, self, column))
                continue
            }
            if !found.definition.utf8.elementsEqual(column.definition.utf8) {
                differences.append(
                    SchemaMismatch(.differs, self, column, expected: column.definition, found: found.definition))
            }
        }
        for column in columns where !wantedColumns.contains(where: { $0.isNamed(like: column) }) {
            differences.append(SchemaMismatch(.unexpected, self, column))
        }
        // A missing column shifts the other columns, but it is already reported.
        let isReordered = !zip(common(columns, wantedColumns), common(wantedColumns, columns))
            .allSatisfy { $0.isNamed(like: $1) }
        if isReordered { differences.append(SchemaMismatch(.reordered, self)) }
        if checksum != wanted.checksum { differences.append(SchemaMismatch(.differs, self)) }
        return differences
    }

    private func common(
        _ columns: [SchemaDescription.Column], _ others: [SchemaDescription.Column]
    ) -> [SchemaDescription.Column] {
        columns.filter { column in others.contains { $0.isNamed(like: column) } }
    }
}

extension SchemaDescription.Column {
    fileprivate func isNamed(like other: Self) -> Bool { SQLName(name) == SQLName(other.name) }
}

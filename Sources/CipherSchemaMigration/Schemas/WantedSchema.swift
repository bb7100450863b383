internal import CipherErrors
package import CipherSQLText
package import CipherSQLite

/// The target schema of a source, as SQLite itself interprets its statements.
///
/// The statements run in a scratch database, so invalid SQL is found before anything is changed.
package struct WantedSchema {
    /// The former names of tables and columns.
    package struct Renames: Sendable, Equatable {
        /// The new table names, each with the old name.
        package var tables: [SQLName: String] = [:]
        /// For each table, by its new name, the new column names, each with the old name.
        package var columns: [SQLName: [SQLName: String]] = [:]
        /// The part of the configuration that contains the renames.
        package var origin = Origin.tableOptions

        /// A part of a configuration that contains renames.
        package enum Origin: Sendable, Equatable { case tableOptions, template, tableVersions }

        package init() {}
    }

    /// A property of a table that a declaration can leave open.
    package enum Property: Sendable, CaseIterable {
        /// The constraints; only table constraints can be left open.
        case constraints
        /// Whether the table is a `WITHOUT ROWID` table.
        case rowID
        /// Whether the table is a `STRICT` table.
        case strictness
    }

    /// A view, index or trigger of the target schema.
    package typealias Object = DatabaseState.Object

    /// The tables, in the order in which they were added.
    package private(set) var tables: [TableShape] = []
    /// The virtual tables, in that order; the tables that store their rows belong to their modules.
    package private(set) var virtualTables: [Object] = []
    /// The views, indexes and triggers, in that order.
    package private(set) var objects: [Object] = []
    /// The former names of tables and columns.
    package var renames = Renames()
    /// For each table, the properties that stay as they are in the database, whatever the table's SQL specifies.
    package var inherited: [SQLName: Set<Property>] = [:]
    /// For each table, the properties that the app states explicitly, so that what the table's SQL omits is to be
    /// removed.
    package var stated: [SQLName: Set<Property>] = [:]

    private let connection: Connection
    /// The database in which tables are tried out.
    package let scratch: ScratchDatabase

    /// Creates an empty schema.
    package init(extensions: SQLExtensions = SQLExtensions()) throws {
        connection = try ScratchDatabase(extensions).connection
        scratch = try ScratchDatabase(extensions)
    }

    /// Adds the object that one CREATE statement creates.
    ///
    /// - Parameter place: The place of the statement, for errors, such as `dbTables[2].chat`.
    /// - Throws: ``StoreError`` with the code `configuration` if SQLite refuses the statement, or if it creates
    ///   nothing.
    package mutating func add(_ sql: String, at place: String) throws {
        do {
            let last = try connection.value(Int64.self, "SELECT coalesce(max(rowid), 0) FROM sqlite_master") ?? 0
            try connection.execute(SQL(text: sql))
            try addObjects(after: last, at: place)
        } catch let error as DatabaseError {
            throw StoreError.unusable(place, "SQLite rejects it", underlying: error)
        }
    }

    private mutating func addObjects(after last: Int64, at place: String) throws {
        var made: [(object: Object, isVirtual: Bool)] = []
        try connection.forEachRow(
            """
            SELECT type, name, tbl_name, sql, type = 'table' AND coalesce(rootpage, 0) = 0 FROM sqlite_master
            WHERE rowid > \(last) AND sql IS NOT NULL ORDER BY rowid
            """
        ) { row in
            made.append(
                (
                    Object(
                        type: try row.get(at: 0), name: try row.get(at: 1), table: try row.get(at: 2),
                        sql: try row.get(at: 3)), try row.get(at: 4)
                ))
        }
        made.removeAll { SQLName($0.object.name).isOfSQLite }
        if let virtual = made.first(where: \.isVirtual) { made = [virtual] }
        guard let (object, isVirtual) = made.first, made.count == 1 else {
            throw StoreError.unusable(
                place, "the SQL does not create a table, view, index or trigger", advice: "use one CREATE statement")
        }
        guard !SQLName(object.name).isOfCipherStore else {
            throw StoreError.unusable(
                place, "\(object.name) begins with cipherstore_, which is reserved",
                advice: "choose another name")
        }
        if isVirtual {
            virtualTables.append(object)
        } else if object.type == "table" {
            tables.append(try TableShape(object.name, in: connection))
        } else {
            objects.append(object)
        }
    }

    /// Returns a table by its name.
    package func table(_ name: String) -> TableShape? {
        tables.first { SQLName($0.name) == SQLName(name) }
    }

    /// Returns whether the schema contains a table or a view.
    func declares(_ name: String) -> Bool {
        table(name) != nil || objects.contains { $0.type == "view" && SQLName($0.name) == SQLName(name) }
    }

    /// Leaves out a table, so that it stays as it is in the database.
    package mutating func leaveOut(_ table: String) {
        tables.removeAll { SQLName($0.name) == SQLName(table) }
    }

    /// Makes the foreign key of a column reference a table other than the one in its text.
    package mutating func keepReference(of table: String, _ column: SQLName, to parent: String) throws {
        guard let index = tables.firstIndex(where: { SQLName($0.name) == SQLName(table) }) else { return }
        let text = tables[index].text.mapping { $0.leading(column, to: parent) }
        tables[index] = try scratch.shape(of: text, name: tables[index].name)
    }

    /// A checksum of the whole target schema, independent of formatting.
    package var fingerprint: String {
        var checksum = Checksum()
        for sql in tables.map(\.sql) + virtualTables.map(\.sql) + objects.map(\.sql) {
            for token in SQLTokens.normalized(sql) { checksum.add(token.bytes) }
            checksum.add("")
        }
        return checksum.text
    }
}

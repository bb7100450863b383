internal import CipherSQLite

/// A private database in which declared tables are tried out, so that wrong SQL is found before anything is changed.
struct ScratchSchema {
    private let connection: Connection

    init(collations: [Collation]) throws {
        // Without a name SQLite makes a private database, which it removes when it is closed. It holds no more than a
        // table at a time; the settings keep even that from being written anywhere.
        connection = try Connection(path: "", mode: .create)
        try connection.execute("PRAGMA journal_mode = MEMORY")
        try connection.execute("PRAGMA cache_spill = OFF")
        for collation in collations { try connection.register(collation) }
    }

    // MARK: Whole tables

    /// The columns that SQLite makes of a declared table.
    ///
    /// - Throws: ``StoreError`` with `migration`, which names the column.
    func columns(of table: DeclaredTable) throws -> [ColumnState] {
        try checkText(of: table)
        do {
            try connection.execute(SQL(text: table.createSQL))
        } catch let error as DatabaseError {
            throw try failure(of: table, error)
        }
        let columns = try ColumnState.read(table: table.name, from: connection)
        try drop(table.name)
        let made = columns.map { SQLName($0.name) }
        let declared = table.columns.map { SQLName($0.name) }
        if let different = (0..<max(made.count, declared.count)).first(where: { index in
            index >= made.count || index >= declared.count || made[index] != declared[index]
        }) {
            let culprit = table.columns[min(max(different - 1, 0), table.columns.count - 1)]
            throw table.failure(culprit, "its definition declares more than one column")
        }
        return columns
    }

    private func checkText(of table: DeclaredTable) throws {
        guard !table.name.isEmpty, !table.name.utf8.contains(0) else {
            throw table.failure(nil, "the name is empty or holds a NUL character")
        }
        guard !table.columns.isEmpty else { throw table.failure(nil, "no column is declared") }
        for column in table.columns {
            guard !column.name.isEmpty, !column.name.utf8.contains(0) else {
                throw table.failure(column, "the name is empty or holds a NUL character")
            }
            if let problem = DefinitionScanner.problem(in: column.definition) {
                throw table.failure(column, "its definition is no column definition: \(problem)")
            }
        }
    }

    /// The column is the one without which SQLite takes the table, and with which it does not.
    private func failure(of table: DeclaredTable, _ error: DatabaseError) throws -> StoreError {
        let bare = DeclaredTable(name: table.name, columns: [.init(name: "x", definition: "")])
        if let error = try firstFailure(of: bare) { return table.failure(nil, "SQLite refuses it", error) }
        for count in 1...table.columns.count {
            let part = DeclaredTable(name: table.name, columns: Array(table.columns.prefix(count)))
            if let error = try firstFailure(of: part) {
                return table.failure(table.columns[count - 1], "SQLite refuses it", error)
            }
        }
        return table.failure(nil, "SQLite refuses it", error)
    }

    private func firstFailure(of table: DeclaredTable) throws -> DatabaseError? {
        do {
            try connection.savepoint {
                try connection.execute(SQL(text: table.createSQL))
                try drop(table.name)
            }
            return nil
        } catch let error as DatabaseError {
            return error
        }
    }

    private func drop(_ table: String) throws {
        try connection.execute("DROP TABLE \(identifier: table)")
    }

    // MARK: Single columns

    /// Lets SQLite say whether it can append a column to a table of this kind.
    ///
    /// The stand-in has the table's columns and no constraints. CHECK is left out: whether rows satisfy it only the
    /// rows themselves can tell.
    ///
    /// - Parameters:
    ///   - added: The columns that are appended before this one.
    ///   - holdsRows: Some columns can be appended to empty tables only.
    func checkAdding(
        _ column: DeclaredTable.Column, of declared: DeclaredTable, to table: TableState, after added: [String],
        isVirtual: Bool, holdsRows: Bool
    ) throws {
        let name = SQL.quoted(identifier: table.name)
        let existing =
            table.columns.map { SQL.quoted(identifier: $0.name) + (table.isStrict ? " \($0.type)" : "") }
            + added.map { SQL.quoted(identifier: $0) + (table.isStrict ? " ANY" : "") }
        let suffix = table.isStrict ? " STRICT" : ""
        try connection.execute("PRAGMA ignore_check_constraints = ON")
        try connection.execute(SQL(text: "CREATE TABLE \(name) (\(existing.joined(separator: ", ")))\(suffix)"))
        // What a virtual column has in a row depends on the row; a stand-in cannot answer for it.
        if holdsRows, !isVirtual { try connection.execute(SQL(text: "INSERT INTO \(name) DEFAULT VALUES")) }
        let failure: DatabaseError?
        do {
            try connection.execute(SQL(text: declared.addSQL(column)))
            failure = nil
        } catch let error as DatabaseError {
            failure = error
        }
        try drop(table.name)
        guard let failure else { return }
        throw StoreError(
            .migration,
            "\(declared.name).\(column.name) cannot be added to a table that exists: a table rebuild is needed",
            advice: "declare it without PRIMARY KEY and UNIQUE, and with a constant DEFAULT where it is NOT NULL; "
                + "nothing was changed",
            underlying: failure)
    }
}

extension DeclaredTable {
    /// The statement that makes the table.
    var createSQL: String {
        let columns = columns.map(\.sql).joined(separator: ", ")
        return "CREATE TABLE \(SQL.quoted(identifier: name)) (\(columns))"
    }

    /// The statement that appends a column.
    func addSQL(_ column: Column) -> String {
        "ALTER TABLE \(SQL.quoted(identifier: name)) ADD COLUMN \(column.sql)"
    }

    /// What is wrong with the table, or with a column of it.
    func failure(_ column: Column?, _ problem: String, _ underlying: DatabaseError? = nil) -> StoreError {
        let place = [name, column?.name].compactMap { $0 }.joined(separator: ".")
        return StoreError(
            .migration, "the declaration of \(place) cannot be used: \(problem)",
            advice: "correct it in the configuration; nothing was changed", underlying: underlying)
    }
}

extension DeclaredTable.Column {
    fileprivate var sql: String {
        let name = SQL.quoted(identifier: name)
        return definition.isEmpty ? name : "\(name) \(definition)"
    }
}

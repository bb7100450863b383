internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// Builds a target schema from declared tables, and finds the place at which a declaration is invalid.
struct DeclaredSchema {
    let tables: [DeclaredTable]
    let extensions: SQLExtensions

    /// Returns the target schema.
    ///
    /// - Throws: ``StoreError`` with the code `configuration`, naming the table and the column.
    func wanted() throws -> WantedSchema {
        try checkNames()
        var wanted = try WantedSchema(extensions: extensions)
        for table in tables { try add(table, to: &wanted) }
        for table in tables {
            for index in table.indexes {
                if let column = index.missingColumn(of: table) {
                    throw table.failure("indexes.\(index.name)", "the table declares no column \(column)")
                }
                try wanted.add(index.createSQL(on: table), at: "tableOptions.\(table.name).indexes.\(index.name)")
            }
        }
        return wanted
    }

    private func checkNames() throws {
        var seen: Set<SQLName> = []
        for table in tables {
            guard seen.insert(SQLName(table.name)).inserted else {
                throw table.failure(nil, "the table is declared twice; names are not case-sensitive in SQLite")
            }
            guard !SQLName(table.name).isOfCipherStore else {
                throw table.failure(nil, "names that begin with cipherstore_ are reserved")
            }
        }
    }

    // MARK: Tables

    private func add(_ table: DeclaredTable, to wanted: inout WantedSchema) throws {
        try checkText(of: table)
        if let error = try wanted.scratch.refusal(of: table.createSQL, name: table.name) {
            throw try failure(of: table, error, wanted.scratch)
        }
        try wanted.add(table.createSQL, at: "the table \(table.name)")
        try checkColumns(of: table, wanted)
        let name = SQLName(table.name)
        wanted.inherited[name] = table.inherited
        wanted.stated[name] = Set(WantedSchema.Property.allCases).subtracting(table.inherited)
        if let old = table.renamedFrom { wanted.renames.tables[name] = old }
        var columns: [SQLName: String] = [:]
        for (new, old) in table.renamedColumns.sorted(by: { $0.key < $1.key }) {
            guard columns.updateValue(old, forKey: SQLName(new)) == nil else {
                throw table.failure(nil, "the renames contain the new name \(new) twice")
            }
        }
        if !columns.isEmpty { wanted.renames.columns[name] = columns }
    }

    private func checkText(of table: DeclaredTable) throws {
        if let fault = SQLName.fault(of: table.name) { throw table.failure(nil, "the name \(fault)") }
        guard !table.columns.isEmpty else { throw table.failure(nil, "the table declares no columns") }
        for column in table.columns {
            if let fault = SQLName.fault(of: column.name) { throw table.failure(column.name, "the name \(fault)") }
            if let fault = SQLFragment.fault(in: column.definition) {
                throw table.failure(column.name, "its definition \(fault)")
            }
        }
        for (index, constraint) in (table.constraints ?? []).enumerated() {
            if let fault = SQLFragment.fault(in: constraint) {
                throw table.failure("constraints[\(index)]", "it \(fault)")
            }
        }
        guard table.isStrict != true || Engine.current.hasStrictTables else {
            throw StoreError(
                .engineTooOld,
                "the table \(table.name) is strict, but the linked SQLite does not support strict tables",
                advice: "link a version of SQLCipher that is based on SQLite 3.37 or newer", changed: .nothing)
        }
    }

    private func checkColumns(of table: DeclaredTable, _ wanted: WantedSchema) throws {
        let made = wanted.tables.last?.columns.map { SQLName($0.name) } ?? []
        let declared = table.columns.map { SQLName($0.name) }
        guard made != declared else { return }
        let different = (0..<max(made.count, declared.count)).first { index in
            index >= made.count || index >= declared.count || made[index] != declared[index]
        }
        let culprit = table.columns[min(max((different ?? 0) - 1, 0), table.columns.count - 1)]
        throw table.failure(culprit.name, "its definition declares more than one column")
    }

    /// Finds the first column or constraint that makes SQLite refuse the table.
    private func failure(
        of table: DeclaredTable, _ error: DatabaseError, _ scratch: ScratchDatabase
    ) throws -> StoreError {
        var part = table
        part.columns = [.init(name: "x", definition: "")]
        part.constraints = nil
        part.isWithoutRowID = nil
        if let error = try scratch.refusal(of: part.createSQL, name: table.name) {
            return table.failure(nil, "SQLite rejects it", error)
        }
        for count in 1...table.columns.count {
            part.columns = Array(table.columns.prefix(count))
            if let error = try scratch.refusal(of: part.createSQL, name: table.name) {
                return table.failure(table.columns[count - 1].name, "SQLite rejects it", error)
            }
        }
        let constraints = table.constraints ?? []
        for count in constraints.indices {
            part.constraints = Array(constraints.prefix(count + 1))
            if let error = try scratch.refusal(of: part.createSQL, name: table.name) {
                return table.failure("constraints[\(count)]", "SQLite rejects it", error)
            }
        }
        return table.failure(nil, "SQLite rejects it", error)
    }
}

extension DeclaredTable {
    /// The statement that creates the table.
    package var createSQL: String {
        let parts = columns.map(\.sql) + (constraints ?? [])
        let options = (isWithoutRowID == true ? ["WITHOUT ROWID"] : []) + (isStrict == true ? ["STRICT"] : [])
        return "CREATE TABLE \(SQL.quoted(identifier: name)) (\(parts.joined(separator: ", ")))"
            + (options.isEmpty ? "" : " " + options.joined(separator: ", "))
    }

    /// The properties that the declaration leaves to the database.
    package var inherited: Set<WantedSchema.Property> {
        var parts: Set<WantedSchema.Property> = []
        if constraints == nil { parts.insert(.constraints) }
        if isWithoutRowID == nil { parts.insert(.rowID) }
        if isStrict == nil { parts.insert(.strictness) }
        return parts
    }

    /// Returns the error for a problem with the table, or with a part of it.
    fileprivate func failure(_ part: String?, _ problem: String, _ underlying: DatabaseError? = nil) -> StoreError {
        let isOption = ["constraints[", "indexes."].contains { part?.hasPrefix($0) == true }
        let section = isOption ? "tableOptions" : "dbTables"
        let place = [section, name, part].compactMap { $0 }.joined(separator: ".")
        return .unusable("the declaration of \(place)", problem, underlying: underlying)
    }
}

extension DeclaredTable.Column {
    fileprivate var sql: String {
        let name = SQL.quoted(identifier: name)
        return definition.isEmpty ? name : "\(name) \(definition)"
    }
}

extension DeclaredTable.Index {
    /// Returns a name in double quotes that is not the name of a column: SQLite would sort the index by a string.
    fileprivate func missingColumn(of table: DeclaredTable) -> String? {
        let names = Set(table.columns.map { SQLName($0.name) })
        return columns.lazy.compactMap { part -> String? in
            let tokens = SQLTokens(part).tokens
            let isAlone = tokens.dropFirst().first.map { $0.kind == .word } ?? true
            guard let name = tokens.first, name.kind == .quotedName, isAlone else { return nil }
            return names.contains(SQLName(part)) || names.contains(SQLName(name.content)) ? nil : name.content
        }.first
    }

    /// Returns the statement that creates the index.
    ///
    /// A text that is the name of a column is quoted, whatever the name; any other text is used as SQL.
    fileprivate func createSQL(on table: DeclaredTable) -> String {
        let names = Set(table.columns.map { SQLName($0.name) })
        let parts = columns.map { names.contains(SQLName($0)) ? SQL.quoted(identifier: $0) : $0 }
        return "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(SQL.quoted(identifier: name)) "
            + "ON \(SQL.quoted(identifier: table.name)) (\(parts.joined(separator: ", ")))"
            + (condition.map { " WHERE \($0)" } ?? "")
    }
}

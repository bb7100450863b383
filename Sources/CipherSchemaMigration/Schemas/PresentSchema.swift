internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The real schema as it is after the requested renames.
///
/// The renames are applied to the text before anything runs, because the comparison that follows needs their result,
/// and a rebuild has to create indexes and triggers again under the new names.
struct PresentSchema {
    /// A table of the database.
    struct Table {
        /// The table after the renames.
        var shape: TableShape
        /// The table's current name in the database, under which its rows are read.
        let name: String
        /// The new column names, each with the current name in the database.
        var columns: [SQLName: String] = [:]
        /// Whether the engine leaves the old names in the table's text, so that it must be rebuilt.
        var isOutdated = false
        /// Whether a rebuild still finds the columns under their old names.
        var keepsOldColumns = false
        /// The reason why the table stays even if tables that the schema does not name are dropped.
        var reasonToKeep: String?
        /// The columns that stay even if columns that the schema does not name are dropped, with the reasons.
        var keptColumns: [SQLName: String] = [:]
        /// The columns whose values a rebuild copies from columns with other names.
        var replacedColumns: Set<SQLName> = []

        /// Returns the current name of a column in the database.
        func column(_ name: SQLName) -> String? { columns[name] ?? shape.column(name)?.name }
    }

    /// A view, index or trigger of the database.
    struct Object {
        /// The object after the renames.
        var object: DatabaseState.Object
        /// Whether the engine leaves the old names in the object's text, so that it must be created again.
        var isOutdated = false
        /// A name in the text for which it is unclear whether it is the one that is renamed.
        var doubt: String?
    }

    var tables: [SQLName: Table] = [:]
    var objects: [Object]
    var operations: [Plan.Operation] = []
    private let state: DatabaseState
    private lazy var reach = Result { try RenameReach(state) }
    /// The schema after the renames so far; `nil` if SQLite cannot make the renames in a copy.
    private var copy: RenamedCopy?
    private var isCopyRequested = false
    private var path: String { state.connection.path }

    init(_ state: DatabaseState) throws {
        self.state = state
        objects = state.objects.map { Object(object: $0) }
        for table in state.tables where !table.isVirtual && !SQLName(table.name).isOfCipherStore {
            let shape = try TableShape(table, in: state.connection)
            tables[SQLName(table.name)] = Table(shape: shape, name: table.name)
        }
    }

    func objects(of table: SQLName) -> [Object] {
        objects.filter { $0.object.type != "view" && SQLName($0.object.table) == table }
    }

    /// The current names of tables that are renamed or whose columns are renamed.
    var origins: [SQLName: Plan.Origin] {
        tables.filter { $0.key != SQLName($0.value.name) || !$0.value.columns.isEmpty }.mapValues {
            Plan.Origin(table: SQLName($0.name), columns: $0.columns.mapValues(SQLName.init))
        }
    }

    // MARK: Tables

    /// Renames an existing table to a free name.
    mutating func rename(_ old: SQLName, to new: String, _ scratch: ScratchDatabase) throws {
        let before = try copied(scratch)
        guard var table = tables.removeValue(forKey: old) else { return }
        let oldName = table.shape.name
        let isCarried = try reach.get().isCarried
        operations.append(
            Plan.Operation(
                .renameTable, table: oldName, sql: try reach.get().statements(from: oldName, to: new),
                reason: "the table is named \(new) in the schema"))
        table.shape.name = new
        tables[SQLName(new)] = table
        copy = try before?.running([RenameReach.statement(from: oldName, to: new)])
        if let before, let copy {
            try takeTexts(of: copy, after: before, old, table: (old, SQLName(new)))
        } else {
            for (name, other) in tables {
                let text = other.shape.text.mapping { $0.renamingReferences(to: old, as: new) }
                guard text != other.shape.text else { continue }
                try replaceText(of: name, text, scratch)
            }
        }
        let isColumn = hasColumn(old)
        for index in objects.indices where !isCopied(objects[index]) && old.isMentioned(in: objects[index].object.sql) {
            let tokens = SQLTokens(objects[index].object.sql)
            let isUnclear = isColumn && tokens.isUnclear(old) || tokens.mayBeString(old)
            objects[index].rewrite(doubt: isUnclear ? oldName : nil, isCarried: isCarried) {
                $0.renamingTable(old, as: new, isColumn: isColumn)
            }
            if SQLName(objects[index].object.table) == old { objects[index].object.table = new }
        }
    }

    /// Drops an empty table, so that another table can take its name and, if it is larger, its sequence.
    ///
    /// Views and triggers elsewhere that name it are created again, because the engine refuses a rename while they are
    /// broken.
    mutating func drop(_ name: SQLName, replacedBy other: TableShape, _ scratch: ScratchDatabase) throws {
        var copy = try copied(scratch)
        guard let table = tables.removeValue(forKey: name) else { return }
        objects.removeAll { $0.object.type != "view" && SQLName($0.object.table) == name }
        for index in objects.indices where objects[index].object.type != "index" {
            if name.isMentioned(in: objects[index].object.sql) { objects[index].isOutdated = true }
        }
        try copy?.dropTable(table.shape.name)
        try copy?.drop(objects.filter(\.isOutdated).map(\.object))
        self.copy = copy
        let sequence = table.shape.facts.isAutoincrement ? table.shape.passingSequence(to: other.name) : []
        operations.append(
            Plan.Operation(
                .dropTable, table: table.shape.name,
                sql: sequence + ["DROP TABLE \(SQL.quoted(identifier: table.shape.name))"],
                reason: "the table contains no rows, and the migration gives its name to another table"))
    }

    // MARK: Columns

    /// Replaces a column's values with those of another column, to which only its own table and indexes refer.
    ///
    /// A rebuild does the work. A constraint of the table that names both columns is removed with the replaced one.
    mutating func replaceColumn(_ new: SQLName, by old: SQLName, of table: SQLName, _ scratch: ScratchDatabase) throws {
        let before = try copied(scratch)
        guard let present = tables[table], let name = present.shape.column(new)?.name else { return }
        var text = present.shape.text
        text.items.removeAll { item in
            item.column.map { SQLName($0) == new } ?? [old, new].allSatisfy { item.uses($0, of: table) }
        }
        text = text.renamingColumn(old, as: name, of: table)
        try replaceText(of: table, text, scratch)
        tables[table]?.columns[new] = present.column(old)
        tables[table]?.columns[old] = nil
        tables[table]?.replacedColumns.insert(new)
        tables[table]?.isOutdated = true
        for index in objects.indices where objects[index].object.type == "index" {
            rewrite(index, column: old.text, as: name, of: table, isCarried: true)
        }
        copy = try before?.running(
            ["DROP TABLE \(SQL.quoted(identifier: present.shape.name))", text.createSQL(name: present.shape.name)]
                + objects(of: table).filter(isCopied).map(\.object.sql))
    }

    /// Renames an existing column to a free name.
    mutating func renameColumn(_ old: SQLName, to new: String, of table: SQLName, _ scratch: ScratchDatabase) throws {
        let before = try copied(scratch)
        guard let present = tables[table], let column = present.shape.column(old) else { return }
        let isCarried = try reach.get().isCarried
        let sql =
            "ALTER TABLE \(SQL.quoted(identifier: present.shape.name)) RENAME COLUMN "
            + "\(SQL.quoted(identifier: column.name)) TO \(SQL.quoted(identifier: new))"
        if isCarried {
            operations.append(
                Plan.Operation(
                    .renameColumn, table: present.shape.name, column: column.name, sql: [sql],
                    reason: "the column is named \(new) in the schema"))
        }
        tables[table]?.columns[SQLName(new)] = present.column(old)
        tables[table]?.columns[old] = nil
        if !isCarried {
            tables[table]?.isOutdated = true
            tables[table]?.keepsOldColumns = true
        }
        copy = try before?.running([sql])
        if let before, let copy {
            try takeTexts(of: copy, after: before, old, table: (table, table))
        } else {
            try replaceText(of: table, present.shape.text.renamingColumn(old, as: new, of: table), scratch)
            for name in tables.keys where name != table {
                guard let other = tables[name] else { continue }
                let text = other.shape.text.mapping { $0.renamingReferenced(old, as: new, of: table) }
                if text != other.shape.text { try replaceText(of: name, text, scratch) }
            }
        }
        for index in objects.indices where !isCopied(objects[index]) {
            rewrite(index, column: column.name, as: new, of: table, isCarried: isCarried)
        }
    }

    private mutating func rewrite(
        _ index: Int, column: String, as new: String, of table: SQLName, isCarried: Bool
    ) {
        let object = objects[index].object
        let old = SQLName(column)
        let isOwn = object.type != "view" && SQLName(object.table) == table
        guard old.isMentioned(in: object.sql), isOwn || table.isMentioned(in: object.sql) else { return }
        let isElsewhere =
            object.type != "index"
            && (tables.contains { name, other in
                name != table && other.shape.column(old) != nil && name.isMentioned(in: object.sql)
            }
                || state.tables.contains { other in
                    other.isVirtual && old.isMentioned(in: other.sql ?? "")
                        && SQLName(other.name).isMentioned(in: object.sql)
                } || SQLTokens(object.sql).mayBeString(old))
        let tokens = SQLTokens(object.sql)
        // A string in double quotes that is equal to the new name would become a name.
        let isString = tokens.mayBeString(SQLName(new)) || tokens.mayContain(string: SQLName(new))
        let doubt = isElsewhere || old == table ? column : isString ? new : nil
        objects[index].rewrite(doubt: doubt, isCarried: isCarried) {
            $0.renamingColumn(old, as: new)
        }
    }

    /// Returns whether any table has a column of this name.
    private func hasColumn(_ name: SQLName) -> Bool {
        tables.values.contains { $0.shape.column(name) != nil }
            || state.tables.contains { $0.isVirtual && name.isMentioned(in: $0.sql ?? "") }
    }

    // MARK: The copy

    private mutating func copied(_ scratch: ScratchDatabase) throws -> RenamedCopy? {
        if !isCopyRequested {
            copy = try RenamedCopy(of: state, scratch)
            isCopyRequested = true
        }
        return copy
    }

    private func isCopied(_ object: Object) -> Bool { copy?.objects[object.object.identity] != nil }

    /// Takes the texts that a rename changed in the copy.
    ///
    /// - Parameters:
    ///   - old: The old name of the table or column.
    ///   - table: The name of the table before and after the rename.
    private mutating func takeTexts(
        of copy: RenamedCopy, after before: RenamedCopy, _ old: SQLName, table: (old: SQLName, new: SQLName)
    ) throws {
        let isCarried = try reach.get().isCarried
        // SQLite also turns strings in double quotes into strings in single quotes, if it makes the rename.
        func isChanged(_ text: String) -> Bool { isCarried || old.isMentioned(in: text) }
        for (name, present) in tables where copy.tables[name] != before.tables[name == table.new ? table.old : name] {
            guard isChanged(present.shape.sql) else { continue }
            let shape = try TableShape(present.shape.name, in: copy.connection)
            if !isCarried, shape.text != present.shape.text { tables[name]?.isOutdated = true }
            tables[name]?.shape = shape
        }
        for index in objects.indices {
            let object = objects[index].object
            guard let new = copy.objects[object.identity], new != before.objects[object.identity],
                isChanged(object.sql)
            else { continue }
            objects[index].object = new
            if !isCarried, object.type != "index" { objects[index].isOutdated = true }
        }
    }

    private mutating func replaceText(of name: SQLName, _ text: TableText, _ scratch: ScratchDatabase) throws {
        guard var table = tables[name] else { return }
        do {
            table.shape = try scratch.shape(of: text, name: table.shape.name)
        } catch let error as DatabaseError {
            throw StoreError.unreachable(
                path, "after the renames, \(table.shape.name) would not be a valid table", correct: .renames,
                underlying: error)
        }
        if try !reach.get().isCarried { table.isOutdated = true }
        tables[name] = table
    }
}

extension PresentSchema.Object {
    /// - Parameter isCarried: Whether the engine applies the rename to views and triggers; every engine applies it to
    ///   indexes.
    fileprivate mutating func rewrite(doubt: String?, isCarried: Bool, _ body: (SQLTokens) -> String) {
        let sql = body(SQLTokens(object.sql))
        guard sql != object.sql else { return }
        object.sql = sql
        self.doubt = self.doubt ?? doubt
        if !isCarried, object.type != "index" { isOutdated = true }
    }
}

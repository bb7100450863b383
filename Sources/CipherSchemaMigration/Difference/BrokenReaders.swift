internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// Finds virtual tables that read rows of another table, such as full-text indexes with external content, and that a
/// change of this table breaks.
///
/// SQLite updates views and triggers after a rename, but not the arguments of a module.
struct BrokenReaders {
    let state: DatabaseState

    /// Returns findings about renames.
    func findings(afterRenamesIn present: PresentSchema) -> [Plan.Finding] {
        let names = Set(present.tables.values.map { SQLName($0.name) })
        return present.tables.values.sorted { $0.name < $1.name }.flatMap { table -> [Plan.Finding] in
            let (old, new) = (table.name, table.shape.name)
            let isRenamed = SQLName(new) != SQLName(old)
            let columns = table.columns.sorted { $0.key < $1.key }
            guard isRenamed || !columns.isEmpty else { return [] }
            // The table that had the new name was empty, and is dropped.
            let isReplacing = isRenamed && state.table(new) != nil && !names.contains(SQLName(new))
            return (isReplacing ? readers(of: SQLName(new)) : []).map {
                finding($0, "reads \(new)", "replaces with \(old)")
            }
                + readers(of: SQLName(old)).flatMap { reader in
                    (isRenamed ? [finding(reader, "reads \(old)", "renames to \(new)")] : [])
                        + columns.compactMap { finding(reader, of: table, column: $1, renamedTo: $0) }
                }
        }
    }

    private func finding(
        _ reader: TableState, of table: PresentSchema.Table, column old: String, renamedTo name: SQLName
    ) -> Plan.Finding? {
        let new = table.shape.column(name)?.name ?? name.text
        if reader.mayRead(column: SQLName(old)) {
            return finding(reader, "reads \(table.name).\(old)", "renames to \(new)")
        }
        guard table.replacedColumns.contains(name), reader.mayRead(column: name) else { return nil }
        return finding(reader, "reads \(table.name).\(new)", "replaces with the values of \(old)")
    }

    /// Returns findings about a change after which a virtual table would find other rows by the name of the rowid.
    func findings(after target: TableShape, of found: PresentSchema.Table) throws -> [Plan.Finding] {
        let columns = state.table(found.name)?.columns ?? []
        let readers = readers(of: SQLName(found.name)).filter { $0.keyColumn(among: columns) == nil }
        let use = "finds the rows of \(found.name) by rowid"
        if target.facts.isWithoutRowID, !found.shape.facts.isWithoutRowID {
            return readers.map { finding($0, use, "removes") }
        }
        var newKey: String?
        if !readers.isEmpty, let key = found.shape.newRowIDs(in: target), try changesRowIDs(of: found, to: key) {
            newKey = key.name
        }
        return readers.compactMap { reader in
            let hiding = reader.keyColumn(among: target.columns).flatMap { target.isRowID($0) ? nil : $0.name }
            return (hiding ?? newKey).map { finding(reader, use, "replaces with the values of \($0)") }
        }
    }

    /// Returns whether a row has a different rowid once the column's values are the rowids.
    private func changesRowIDs(of found: PresentSchema.Table, to key: ColumnState) throws -> Bool {
        guard let alias = found.shape.rowIDAlias, let column = found.column(SQLName(key.name)) else { return false }
        return try state.connection.value(
            Bool.self,
            """
            SELECT EXISTS (SELECT 1 FROM main.\(identifier: found.name)
            WHERE \(SQL(text: alias)) IS NOT CAST(\(SQL(text: SQL.quoted(column: column))) AS INTEGER))
            """) == true
    }

    private func readers(of table: SQLName) -> [TableState] { state.tables.filter { $0.reads(table) } }

    private func finding(_ reader: TableState, _ use: String, _ change: String) -> Plan.Finding {
        Plan.Finding(
            .removesSchema, table: reader.name,
            message: "the virtual table \(reader.name) \(use), which the migration \(change)")
    }
}

extension TableShape {
    /// Returns the column whose values become the rowids if the table is rebuilt as another one; `nil` if the rows keep
    /// their rowids.
    fileprivate func newRowIDs(in target: TableShape) -> ColumnState? {
        guard !facts.isWithoutRowID, let key = target.rowIDColumn else { return nil }
        let name = SQLName(key.name)
        return rowIDColumn.map { SQLName($0.name) } == name ? nil : column(name)
    }
}

extension TableState {
    /// Returns whether a virtual table may read rows of another table.
    ///
    /// A full-text index reads only the table that its option `content` names, and an R-tree none; any other module may
    /// read every table that its arguments name.
    fileprivate func reads(_ table: SQLName) -> Bool {
        guard isVirtual, let sql else { return false }
        let tokens = SQLTokens(sql).tokens
        guard let using = tokens.firstIndex(where: { $0.isKeyword("USING") }), using + 2 < tokens.count else {
            return false
        }
        let module = SQLName(tokens[using + 1].content)
        guard ![SQLName("rtree"), SQLName("rtree_i32"), SQLName("geopoly")].contains(module) else { return false }
        let isFullText = module.hasPrefix("fts")
        return tokens.indices.dropFirst(using + 2).contains { index in
            let isContent =
                tokens[index - 1].isKeyword("=") && tokens[index - 2].isNamed(SQLName("content")) || !isFullText
            return isContent && (tokens[index].isNamed(table) || tokens[index].isText(table))
        }
    }

    /// Returns whether a virtual table may read a column of another table.
    fileprivate func mayRead(column: SQLName) -> Bool { column.isMentioned(in: sql ?? "") || column == keyName }

    /// Returns the column by which a virtual table finds the rows of another table; `nil` if it uses the rowid itself.
    fileprivate func keyColumn(among columns: [ColumnState]) -> ColumnState? {
        let keyName = keyName
        return columns.first { SQLName($0.name) == keyName }
    }

    /// The name by which a virtual table finds the rows of another table: the one in its option `content_rowid`, or
    /// `rowid` without that option.
    private var keyName: SQLName {
        let tokens = SQLTokens(sql ?? "").tokens
        let option = tokens.indices.dropLast(2).first {
            tokens[$0].isNamed(SQLName("content_rowid")) && tokens[$0 + 1].isKeyword("=")
        }
        return SQLName(option.map { tokens[$0 + 2].name } ?? "rowid")
    }
}

extension SQLToken {
    /// Returns whether the token is a string that contains only the given name.
    fileprivate func isText(_ name: SQLName) -> Bool {
        kind == .literal && SQLName(content) == SQLName(SQL.quoted(text: name.text))
    }
}

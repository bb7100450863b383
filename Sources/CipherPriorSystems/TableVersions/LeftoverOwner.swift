internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// Finds the table whose old one a table is that an app's own upgrade left behind.
///
/// Its columns decide: to give rows to a table that they were never of is worse than to leave them where they are. That
/// a table is empty says nothing, for its user may have emptied it. Nor does a column that only the old table has, for
/// the upgrade may drop it; that the new table was made after the old one is what shows the upgrade.
struct LeftoverOwner {
    let tables: [VersionedTable]
    let record: TableVersionRecord
    let wanted: WantedSchema
    let state: DatabaseState

    /// A table that may be the owner.
    private struct Candidate {
        let table: VersionedTable
        /// Whether the table has, or had, every column of the leftover.
        let isWhole: Bool
        /// How well the columns agree, from 0 to 1.
        let share: Double
        /// Whether more than the key speaks for it.
        let isProbable: Bool
    }

    /// Returns `nil` if it fits no table.
    ///
    /// - Parameter free: The tables that have not got theirs yet.
    /// - Throws: ``StoreError`` with `migration` if only the app's developer can tell. Once CipherStore has recorded a
    ///   version the app has been opened with both, and the leftover continues being kept.
    func table(of leftover: TableState, among free: [VersionedTable]) throws -> VersionedTable? {
        let name = SQLName(leftover.name)
        let named = free.filter { $0.leftover.map(SQLName.init) == name }
        guard named.isEmpty else { return named.count == 1 ? named[0] : try unclear(leftover, named) }
        let found = candidates(for: leftover, among: free)
        guard let owner = found.first else { return nil }
        return found.count == 1 && owner.isProbable ? owner.table : try unclear(leftover, found.map(\.table))
    }

    private func unclear(_ leftover: TableState, _ tables: [VersionedTable]) throws -> VersionedTable? {
        guard try !state.isAdopted && state.holdsRows(leftover.name) else { return nil }
        throw StoreError(
            .migration, path: state.connection.path,
            "the table \(leftover.name), left by an unfinished upgrade, may belong to "
                + tables.map(\.name).joined(separator: " or "),
            advice: "name it in the configuration as "
                + tables.map { "tableVersions.\($0.name).leftover" }.joined(separator: " or "),
            changed: .nothing)
    }

    /// Whether the app made the table once, and it is gone.
    func isGone(_ table: VersionedTable) -> Bool {
        state.table(table.name) == nil && record.version(of: table.name) != nil
    }

    private func isUnfinished(_ table: VersionedTable) -> Bool {
        record.version(of: table.name).map { $0 < table.version } ?? false
    }

    // MARK: Narrowing

    private func candidates(for leftover: TableState, among free: [VersionedTable]) -> [Candidate] {
        let name = SQLName(leftover.name)
        var found = free.compactMap { table -> Candidate? in
            let isCommon = name == SQLName(LeftoverTables.commonName)
            let isOwn = name == SQLName(table.name + "Old") && state.table(table.name) == nil
            guard table.leftover == nil, isCommon || isOwn, mayHaveBeen(table), isNewer(table, than: leftover) else {
                return nil
            }
            return candidate(table, for: leftover)
        }
        found.narrow(\.isWhole)
        let best = found.map(\.share).max()
        // Where columns are gone from all of them, the rest is too little to choose by.
        if found.contains(where: \.isWhole) { found.removeAll { $0.share != best } }
        // The record is written at the end of a table's upgrade, and the table is away at its beginning.
        found.narrow { isUnfinished($0.table) }
        found.narrow { isGone($0.table) }
        // While the name is taken no other table can be made anew.
        let last = found.compactMap { place(of: $0.table.name) }.max()
        found.narrow { place(of: $0.table.name) == last }
        return found
    }

    /// The place in the order in which the tables were made.
    private func place(of table: String) -> Int? {
        state.tables.firstIndex { SQLName($0.name) == SQLName(table) }
    }

    /// Whether the table was made after the leftover, as the upgrade makes it, or is missing.
    private func isNewer(_ table: VersionedTable, than leftover: TableState) -> Bool {
        guard let place = place(of: table.name), let old = self.place(of: leftover.name) else { return true }
        return place > old
    }

    /// A table that is new in this version of the app can have left nothing.
    private func mayHaveBeen(_ table: VersionedTable) -> Bool {
        if state.table(table.name) != nil || record.version(of: table.name) != nil { return true }
        return !state.isAdopted && tables.allSatisfy { record.version(of: $0.name) == nil }
    }

    /// What speaks for a table; `nil` if the columns are of another one.
    private func candidate(_ table: VersionedTable, for leftover: TableState) -> Candidate? {
        guard let shape = wanted.table(table.name) else { return nil }
        let wantedNames = Set(shape.columns.map { SQLName($0.name) })
        let known = wantedNames.union(table.renamedColumns.values.map(SQLName.init))
            .union(state.table(table.name)?.columns.map { SQLName($0.name) } ?? [])
        let common = leftover.columns.filter { known.contains(SQLName($0.name)) }
        let hasKey = leftover.columns.allSatisfy { column in
            column.primaryKeyPosition == 0 || common.contains { $0.name == column.name }
        }
        let isWhole = common.count == leftover.columns.count
        guard hasKey, !common.isEmpty, isWhole || isGone(table) || isUnfinished(table) else { return nil }
        return Candidate(
            table: table, isWhole: isWhole,
            share: Double(common.count) / Double(leftover.columns.count + wantedNames.count - common.count),
            isProbable: isWhole || common.contains { $0.primaryKeyPosition == 0 })
    }
}

extension Array {
    /// Keeps the elements that satisfy a condition, or all where none does.
    fileprivate mutating func narrow(_ condition: (Element) -> Bool) {
        let kept = filter(condition)
        if !kept.isEmpty { self = kept }
    }
}

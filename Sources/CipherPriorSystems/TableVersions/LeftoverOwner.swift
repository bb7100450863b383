internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// Finds the table that a leftover belongs to.
///
/// A leftover is an old table that an app's own upgrade left behind.
///
/// The leftover's columns decide: moving rows to a table to which they never belonged is worse than leaving them where
/// they are. An empty table is no evidence, because its user may have emptied it. A column that only the old table has
/// is no evidence either, because the upgrade may have dropped it. The evidence of an upgrade is that the new table was
/// created after the old one.
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
        /// The degree to which the columns match, from 0 to 1.
        let share: Double
        /// Whether more than the key matches.
        let isProbable: Bool
    }

    /// Returns the table that a leftover belongs to; `nil` if it fits no table.
    ///
    /// - Parameter free: The tables to which no leftover was assigned yet.
    /// - Throws: ``StoreError`` with the code `migration` if only the app's developer can decide. After CipherStore has
    ///   recorded a version, the app has been used with both tables, and the leftover is kept.
    func table(of leftover: TableState, among free: [VersionedTable]) throws -> VersionedTable? {
        let name = SQLName(leftover.name)
        let named = free.filter { $0.leftover.map(SQLName.init) == name }
        guard named.isEmpty else { return named.count == 1 ? named[0] : try unclear(leftover, named.map(\.name)) }
        let found = candidates(for: leftover, among: free)
        guard let owner = found.first else { return nil }
        // If the table itself is missing, and had these columns, no other table is as likely.
        let others = owner.isWhole && isGone(owner.table) ? [] : undeclared(leftover)
        return found.count == 1 && owner.isProbable && others.isEmpty
            ? owner.table : try unclear(leftover, found.map(\.table.name) + others)
    }

    /// Returns the undeclared tables with a recorded version to which a leftover may belong.
    ///
    /// The columns of a missing table are unknown.
    private func undeclared(_ leftover: TableState) -> [String] {
        guard SQLName(leftover.name) == SQLName(LeftoverTables.commonName) else { return [] }
        return record.undeclared.values.sorted().filter { name in
            guard let table = state.table(name) else { return true }
            return isNewer(name, than: leftover) && leftover.columns.allSatisfy { table.column($0.name) != nil }
        }
    }

    private func unclear(_ leftover: TableState, _ tables: [String]) throws -> VersionedTable? {
        guard try !state.isAdopted && state.holdsRows(leftover.name) else { return nil }
        throw StoreError(
            .migration, path: state.connection.path,
            "the table \(leftover.name) remains from an unfinished upgrade and may belong to "
                + tables.joined(separator: " or "),
            advice: "declare the right table, and set "
                + tables.map { "tableVersions.\($0).leftover" }.joined(separator: " or ")
                + " in the configuration to \"\(leftover.name)\"",
            changed: .nothing)
    }

    /// Returns whether the app once created the table, and it no longer exists.
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
            guard table.leftover == nil, isCommon || isOwn, mayHaveBeen(table), isNewer(table.name, than: leftover)
            else { return nil }
            return candidate(table, for: leftover)
        }
        found.narrow(\.isWhole)
        let best = found.map(\.share).max()
        // If all of the tables lack some of the columns, the other columns are too little evidence for a choice.
        if found.contains(where: \.isWhole) { found.removeAll { $0.share != best } }
        // The record is written at the end of a table's upgrade, and the table is missing at its beginning.
        found.narrow { isUnfinished($0.table) }
        found.narrow { isGone($0.table) }
        // As long as the leftover's name is taken, no other table can be upgraded.
        let last = found.compactMap { place(of: $0.table.name) }.max()
        found.narrow { place(of: $0.table.name) == last }
        return found
    }

    /// Returns the position of a table in the order in which the tables were created.
    private func place(of table: String) -> Int? {
        state.tables.firstIndex { SQLName($0.name) == SQLName(table) }
    }

    /// Returns whether the table was created after the leftover, as the upgrade creates it, or is missing.
    private func isNewer(_ table: String, than leftover: TableState) -> Bool {
        guard let place = place(of: table), let old = self.place(of: leftover.name) else { return true }
        return place > old
    }

    /// Returns whether the table may have left a leftover; a table that is new in this version of the app cannot.
    private func mayHaveBeen(_ table: VersionedTable) -> Bool {
        if state.table(table.name) != nil || record.version(of: table.name) != nil { return true }
        return !state.isAdopted && tables.allSatisfy { record.version(of: $0.name) == nil }
    }

    /// Returns the evidence for a table; `nil` if the columns are those of another table.
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
    /// Keeps the elements that satisfy a condition, or all elements if none does.
    fileprivate mutating func narrow(_ condition: (Element) -> Bool) {
        let kept = filter(condition)
        if !kept.isEmpty { self = kept }
    }
}

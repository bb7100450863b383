internal import CipherSQLite

/// Finds the table whose old one a table is that an app's own upgrade left behind.
///
/// Its columns decide: to give rows to a table that they were never of is worse than to leave them where they are. That a
/// table is empty says nothing, for its user may have emptied it.
struct LeftoverOwner {
    let tables: [VersionedTable]
    let record: TableVersionRecord
    let wanted: WantedSchema
    let state: DatabaseState

    /// A table that may be the owner.
    private struct Candidate {
        let table: VersionedTable
        let fit: Fit
    }

    private struct Fit {
        /// Whether the table has, or had, every column of the leftover.
        let isWhole: Bool
        /// How well the columns agree, from 0 to 1.
        let share: Double
    }

    /// Returns `nil` where it fits no table.
    ///
    /// - Parameter free: The tables that have not got theirs yet.
    /// - Throws: ``StoreError`` with `migration` where two fit alike. Once CipherStore has recorded a version the app
    ///   has been opened with both, and the leftover goes on being kept.
    func table(of leftover: TableState, among free: [VersionedTable]) throws -> VersionedTable? {
        let name = SQLName(leftover.name)
        let named = free.filter { $0.leftover.map(SQLName.init) == name }
        let found = named.isEmpty ? candidates(for: leftover, among: free) : named
        guard found.count > 1 else { return found.first }
        guard !state.isAdopted else { return nil }
        throw StoreError(
            .migration, path: state.connection.path,
            "the table \(leftover.name), which an upgrade that did not end left, may belong to "
                + found.map(\.name).joined(separator: " or "),
            advice: "name it in the configuration as tableVersions.TABLE.leftover; nothing was changed")
    }

    /// Whether the app made the table once, and it is gone.
    func isGone(_ table: VersionedTable) -> Bool {
        state.table(table.name) == nil && record.version(of: table.name) != nil
    }

    private func isUnfinished(_ table: VersionedTable) -> Bool {
        record.version(of: table.name).map { $0 < table.version } ?? false
    }

    // MARK: Narrowing

    private func candidates(for leftover: TableState, among free: [VersionedTable]) -> [VersionedTable] {
        let name = SQLName(leftover.name)
        var found = free.compactMap { table -> Candidate? in
            let isCommon = name == SQLName(LeftoverTables.commonName)
            let isOwn = name == SQLName(table.name + "Old") && state.table(table.name) == nil
            guard table.leftover == nil, isCommon || isOwn, mayHaveBeen(table) else { return nil }
            return fit(of: leftover, to: table).map { Candidate(table: table, fit: $0) }
        }
        found.narrow { $0.fit.isWhole }
        let best = found.map(\.fit.share).max()
        found.removeAll { $0.fit.share != best }
        // The record is written at the end of a table's upgrade, and the table is away at its beginning.
        found.narrow { isUnfinished($0.table) }
        found.narrow { isGone($0.table) }
        return found.map(\.table)
    }

    /// A table that is new in this version of the app can have left nothing.
    private func mayHaveBeen(_ table: VersionedTable) -> Bool {
        if state.table(table.name) != nil || record.version(of: table.name) != nil { return true }
        return !state.isAdopted && tables.allSatisfy { record.version(of: $0.name) == nil }
    }

    /// How well the columns agree; `nil` where they are of another table.
    private func fit(of leftover: TableState, to table: VersionedTable) -> Fit? {
        guard let shape = wanted.table(table.name) else { return nil }
        let wantedNames = Set(shape.columns.map { SQLName($0.name) })
        let known = wantedNames.union(table.renamedColumns.values.map(SQLName.init))
            .union(state.table(table.name)?.columns.map { SQLName($0.name) } ?? [])
        let common = leftover.columns.filter { known.contains(SQLName($0.name)) }
        let hasKey = leftover.columns.allSatisfy { column in
            column.primaryKeyPosition == 0 || common.contains { $0.name == column.name }
        }
        let isWhole = common.count == leftover.columns.count
        // A table that is away may have had columns that the app's present version does not know any more.
        guard hasKey, isWhole || isGone(table) && common.count * 2 > leftover.columns.count else { return nil }
        return Fit(
            isWhole: isWhole,
            share: Double(common.count) / Double(leftover.columns.count + wantedNames.count - common.count))
    }
}

extension Array {
    /// Keeps the elements that satisfy a condition, or all where none does.
    fileprivate mutating func narrow(_ condition: (Element) -> Bool) {
        let kept = filter(condition)
        if !kept.isEmpty { self = kept }
    }
}

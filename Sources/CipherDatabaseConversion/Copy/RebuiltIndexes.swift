internal import CipherSQLite

/// The damaged indexes of an original because of which all indexes of its copy were filled from the rows.
struct RebuiltIndexes {
    /// The names of the damaged indexes, as far as they are known.
    let names: Set<String>
    let warnings: [String]

    /// Creates a description of indexes that do not match the rows.
    init(_ found: CopyProof.DamagedIndexes) {
        names = found.indexes
        warnings = found.complaints.map { "a damaged index was rebuilt from the rows: \($0)" }
    }

    /// Creates a description of an index that cannot be read.
    init(after error: DatabaseError) {
        names = []
        warnings = ["all indexes were rebuilt from the rows, because one of them could not be read: \(error.message)"]
    }
}

extension EncryptionReport {
    /// Sets the results of a proof, and appends its warnings and those about the damage to the original.
    mutating func add(_ proven: CopyProof.Outcome, _ losses: PossibleLosses, _ rebuilt: RebuiltIndexes?) {
        tables = proven.tables
        rows = proven.rows
        // Both the first attempt and the proof of the second one may have found the same damage.
        let known = rebuilt?.warnings ?? []
        warnings += known + proven.warnings.filter { !known.contains($0) } + losses.descriptions
        let hasRebuilt = rebuilt != nil || !proven.healedIndexes.isEmpty
        if hasRebuilt, proven.usesOwnCase { warnings.append(SQLExtensions.rebuiltWithOwnCase) }
        rebuiltIndexes = (rebuilt?.names ?? []).union(proven.healedIndexes)
            .union(losses.missing.map(\.index.description)).sorted()
    }
}

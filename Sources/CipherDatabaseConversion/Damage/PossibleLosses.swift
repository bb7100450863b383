internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat

/// The reasons why an original may contain rows that are neither in its tables nor in its copy.
struct PossibleLosses {
    /// The rows for which only indexes have entries.
    var missing: [MissingRows] = []
    /// The findings about pages that may hold rows, as sentences.
    ///
    /// A recovery may find such rows.
    var hidden: [String] = []

    /// All reasons, as sentences.
    var descriptions: [String] { missing.map(\.description) + hidden }

    /// Searches the original.
    ///
    /// - Parameters:
    ///   - pages: Returns the pages that `connection` reads; `nil` if they cannot be read.
    ///   - searchesPages: Whether to search them for hidden rows.
    ///   - path: The path of the original, for errors.
    ///   - onlyPartial: Whether only partial indexes can have entries for missing rows.
    /// - Throws: ``StoreError`` with the code `corrupt` if an index's tree may hold a table's rows, or if the schema is
    ///   empty although there are pages of tables.
    static func find(
        in connection: Connection, searchesPages: Bool = true, of path: String, onlyPartial: Bool,
        _ pages: () throws -> (any PageSource)?
    ) throws -> PossibleLosses {
        let missing = try MissingRows.all(in: connection, onlyPartial: onlyPartial)
        let readsIndexes = try !onlyPartial || IndexTree.all(connection).contains { $0.state.isPartial }
        guard searchesPages || readsIndexes, let pages = try pages() else { return PossibleLosses(missing: missing) }
        let records = try IndexTree.foreignRecords(pages, connection, path, onlyPartial: onlyPartial)
        let hidden = searchesPages ? try HiddenRows.find(in: pages, of: path) : []
        return PossibleLosses(missing: missing, hidden: [records].compactMap(\.self) + hidden)
    }

    /// Returns why the original must be recovered; `nil` if it need not be, or if the options do not request recovery.
    func reasonForRecovery(_ onDamage: OnDamage) -> String? { onDamage == .recover ? hidden.first : nil }
}

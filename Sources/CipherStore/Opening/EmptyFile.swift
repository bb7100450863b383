internal import CipherCatalog
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

extension StoreOpening {
    /// What is to be told of an encrypted file that holds nothing and that CipherStore did not make; `nil` of any other.
    ///
    /// An app that made the encrypted file first and then copied the rows leaves such where it did not end.
    ///
    /// - Parameter recorded: What the app recorded. A version and no table at all the migration tells of.
    func emptiness(_ connection: Connection, recorded: SchemaVersion?) throws -> String? {
        let state = try DatabaseState(of: connection, countsRows: false) { recorded }
        guard !state.hasHistory else { return nil }
        let records = configuration.recordedVersion.tables
        let tables = state.tables.filter { !records.contains(SQLName($0.name)) }
        let version = recorded ?? .zero
        if tables.isEmpty, version == .zero {
            return "the encrypted file has no tables, and CipherStore did not create it: there was nothing to keep"
        }
        guard !tables.isEmpty,
            try tables.allSatisfy({ try !$0.isVirtual && !state.holdsRows($0.name) })
        else { return nil }
        return version == .zero
            ? "no version is recorded, and every table is empty: there was nothing to keep"
            : "version \(version) is recorded, but every table is empty: there was nothing to keep"
    }
}

internal import CipherCatalog
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

extension StoreOpening {
    /// Returns the warning about an encrypted file that holds no data and that CipherStore did not create; `nil` for
    /// any other file.
    ///
    /// An app that created the encrypted file first and then copied the rows leaves such a file if it was interrupted.
    ///
    /// - Parameter recorded: The version that the app recorded. If a version is recorded but there are no tables, the
    ///   schema migration warns about it instead.
    func emptiness(_ connection: Connection, recorded: SchemaVersion?) throws -> String? {
        let state = try DatabaseState(of: connection, countsRows: false) { recorded }
        guard !state.hasHistory else { return nil }
        let records = configuration.recordedVersion.tables
        let tables = state.tables.filter { !records.contains(SQLName($0.name)) }
        let version = recorded ?? .zero
        if tables.isEmpty, version == .zero {
            return "the encrypted file was not created by CipherStore and had no tables, so there was no data to "
                + "preserve"
        }
        guard !tables.isEmpty,
            try tables.allSatisfy({ try !$0.isVirtual && !state.holdsRows($0.name) })
        else { return nil }
        return version == .zero
            ? "no version was recorded and every table was empty, so there was no data to preserve"
            : "version \(version) was recorded, but every table was empty, so there was no data to preserve"
    }
}

internal import CipherSQLite

/// The connection's settings that a schema migration changes, and restores whether it succeeds or fails.
struct SchemaChangeSettings {
    private let connection: Connection

    init(_ connection: Connection) {
        self.connection = connection
    }

    /// Runs `body` without foreign keys, with renames that update other objects, and with CHECK constraints.
    ///
    /// Foreign keys can only be switched outside a transaction. While they are on, dropping a table deletes the rows
    /// that reference it. A plan that fails between two of its statements leaves a setting in its temporary state.
    func during<Result>(_ body: () throws -> Result) throws -> Result {
        let pragmas = ["foreign_keys", "legacy_alter_table", "ignore_check_constraints"]
        var settings: [(pragma: String, isOn: Bool)] = []
        for pragma in pragmas {
            // An engine that does not know a pragma returns no row.
            guard let isOn = try connection.value(Bool.self, SQL(text: "PRAGMA \(pragma)")) else { continue }
            settings.append((pragma, isOn))
            if isOn { try set(pragma, false) }
        }
        let result: Result
        do {
            result = try body()
        } catch {
            for setting in settings { try set(setting.pragma, setting.isOn) }
            throw error
        }
        for setting in settings { try set(setting.pragma, setting.isOn) }
        return result
    }

    private func set(_ pragma: String, _ isOn: Bool) throws {
        try connection.execute(SQL(text: "PRAGMA \(pragma) = \(isOn ? "ON" : "OFF")"))
    }
}

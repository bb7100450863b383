internal import CCipherEngine

/// The callback that SQLite calls for each statement that it compiles.
struct Authorizer {
    let callback:
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
            UnsafePointer<CChar>?
        ) -> Int32
    let context: UnsafeMutableRawPointer
}

extension Connection {
    /// Replaces the authorizer; `nil` removes it.
    ///
    /// The corresponding C function is `sqlite3_set_authorizer`.
    func setAuthorizer(_ authorizer: Authorizer?) throws {
        try check(sqlite3_set_authorizer(handle, authorizer?.callback, authorizer?.context))
        self.authorizer = authorizer
    }
}

/// The statements that an app's closure may not run.
extension Connection {
    /// Makes SQLite refuse statements that would outlast the transaction, before they run, while the connection is
    /// lent.
    ///
    /// These are transaction statements; ATTACH; temporary tables, views and triggers, which would continue to hide
    /// other objects of the same name or change what they do; and pragmas that set more than the transaction undoes.
    /// They are refused during compilation, because SQLCipher runs some of its pragmas then, and `PRAGMA rekey`
    /// re-encrypts the whole file.
    ///
    /// Do not use this on a connection that has another authorizer, because SQLite calls only one.
    ///
    /// The corresponding C function is `sqlite3_set_authorizer`.
    package func refuseWhatOutlastsLoans() throws {
        try setAuthorizer(
            Authorizer(
                callback: { context, code, first, second, third, cause in
                    if let context {
                        Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
                            .recordAccess(code, first, second, isOfTrigger: cause != nil)
                    }
                    // SQLite reports the database, whether the statement names it or contains TEMP. SQLite's own name
                    // for the temporary database is ASCII, and no other database can have that name.
                    let isTemporary =
                        (SQLITE_CREATE_INDEX...SQLITE_CREATE_VIEW ~= code || code == SQLITE_CREATE_VTABLE)
                        && third.map { String(cString: $0) } == "temp"
                    guard
                        isTemporary || code == SQLITE_PRAGMA || code == SQLITE_TRANSACTION || code == SQLITE_ATTACH
                            || code == SQLITE_DETACH
                    else { return SQLITE_OK }
                    guard let context else { return SQLITE_DENY }
                    let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
                    guard connection.isLent else { return SQLITE_OK }
                    // The name is only compared with ASCII names and shown; a name that is not valid UTF-8 matches none
                    // of them.
                    let subject = first.map { String(cString: $0) } ?? ""
                    connection.refusal =
                        connection.requiresTransaction
                        ? Connection.refusal(of: code, subject, hasValue: second != nil)
                        // VACUUM attaches a file while it runs.
                        : connection.isCompiling
                            ? Connection.refusalWithoutTransaction(of: code, subject, hasValue: second != nil) : nil
                    return connection.refusal == nil ? SQLITE_OK : SQLITE_DENY
                }, context: Unmanaged.passUnretained(self).toOpaque()))
        tellsOfSchemaChanges = true
    }

    /// Returns the reason that a lent connection does not run a statement, without a pragma's value, which may be a
    /// key.
    private static func refusal(of code: Int32, _ subject: String, hasValue: Bool) -> String? {
        switch code {
        case SQLITE_TRANSACTION:
            return "\(subject) cannot run here: CipherStore begins and ends the transaction"
        case SQLITE_PRAGMA:
            guard !isAllowed(pragma: subject.lowercased(), hasValue: hasValue) else { return nil }
            return
                "PRAGMA \(subject) cannot run here\(hasValue ? " with a value" : ""): it would outlast the transaction"
        case SQLITE_ATTACH, SQLITE_DETACH:
            return "ATTACH and DETACH cannot run here: they would outlast the transaction"
        default:
            return
                "CREATE TEMP cannot run here: it would outlast the transaction; use WITH, or a table in the database"
        }
    }

    /// Returns the reason that a connection that is lent without a transaction, and closed afterwards, does not run a
    /// statement.
    private static func refusalWithoutTransaction(of code: Int32, _ subject: String, hasValue: Bool) -> String? {
        switch code {
        case SQLITE_PRAGMA:
            let name = subject.lowercased()
            // A checkpoint is not safe if other connections exist: see ``Checkpointer``.
            if name == "wal_checkpoint" {
                return "PRAGMA wal_checkpoint cannot run here: call the store's checkpoint()"
            }
            guard !isAllowed(pragma: name, hasValue: hasValue), !pragmasOfConnection.contains(name) else { return nil }
            return
                "PRAGMA \(subject) cannot run here\(hasValue ? " with a value" : ""): "
                + "the store sets it or depends on it"
        case SQLITE_ATTACH, SQLITE_DETACH: return "ATTACH and DETACH cannot run here"
        default: return nil
        }
    }

    private static func isAllowed(pragma name: String, hasValue: Bool) -> Bool {
        // SQLCipher's own pragmas, some of which have an effect without a value.
        if name.hasPrefix("cipher_") || name.hasSuffix("kdf_iter") || name.hasSuffix("key") {
            return !hasValue && readingCipherPragmas.contains(name)
        }
        return !hasValue || pragmasOfTransaction.contains(name)
    }

    private static let readingCipherPragmas: Set = [
        "cipher_version", "cipher_provider", "cipher_provider_version", "cipher_fips_status", "cipher_settings",
        "cipher_integrity_check",
    ]

    /// Pragmas whose value selects what to read, or whose effect the transaction undoes or ends.
    private static let pragmasOfTransaction: Set = [
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "integrity_check",
        "quick_check", "foreign_key_list", "foreign_key_check", "defer_foreign_keys", "user_version", "application_id",
        "incremental_vacuum", "optimize",
    ]

    /// Pragmas whose effect ends with the connection, and on which no guarantee of a store depends.
    private static let pragmasOfConnection: Set = [
        "foreign_keys", "ignore_check_constraints", "recursive_triggers", "reverse_unordered_selects",
        "case_sensitive_like", "automatic_index", "cache_size", "analysis_limit", "auto_vacuum",
    ]
}

internal import CCipherEngine

extension Connection {
    /// Accepts strings in double quotes in an app's old statements, and in the views and triggers of its schema.
    ///
    /// Engines before SQLite 3.29 always accept them. Such strings are never accepted in statements that a closure runs
    /// while the connection is lent.
    ///
    /// - Parameter inDefinitions: Whether to accept strings in double quotes in new definitions, too.
    package func allowDoubleQuotedStrings(inDefinitions: Bool = true) {
        acceptsStringsInDefinitions = inDefinitions
        _ = cs_config_double_quoted_strings(handle, inDefinitions ? 1 : 0, 1)
    }

    /// Makes an unknown name in double quotes an error instead of a string, except in the schema of a file.
    ///
    /// Engines before SQLite 3.29 do not have this setting.
    /// Source: SQLite, "Double-quoted String Literals Are Accepted".
    package func refuseDoubleQuotedStrings() {
        _ = cs_config_double_quoted_strings(handle, 0, 0)
    }

    /// Makes new files use SQLite's first schema format in their header.
    package func useLegacyFileFormat() throws {
        if cs_config_legacy_file_format(handle, 1) != SQLITE_OK { try execute("PRAGMA legacy_file_format = ON") }
    }

    /// Refuses SQL that can damage the file.
    ///
    /// Engines before SQLite 3.26 do not have this setting.
    package func beDefensive() {
        _ = cs_config_defensive(handle, 1)
    }

    /// Runs `body` with triggers disabled.
    package func withoutTriggers<Result>(_ body: () throws -> Result) throws -> Result {
        try check(cs_config_triggers(handle, 0))
        // If disabling the triggers succeeded, enabling them again succeeds, too.
        defer { _ = cs_config_triggers(handle, 1) }
        return try body()
    }
}

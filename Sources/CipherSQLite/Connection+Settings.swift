internal import CCipherEngine

extension Connection {
    /// Accepts strings in double quotes in an app's old statements, and in what views and triggers of its schema run.
    ///
    /// Engines before SQLite 3.29 always do. What a closure runs while the connection is lent is never taken so.
    ///
    /// - Parameter inDefinitions: Whether in new definitions too.
    package func allowDoubleQuotedStrings(inDefinitions: Bool = true) {
        acceptsStringsInDefinitions = inDefinitions
        _ = cs_config_double_quoted_strings(handle, inDefinitions ? 1 : 0, 1)
    }

    /// Has a name in double quotes that is missing be an error and not a string, except in the schema of a file.
    ///
    /// Engines before SQLite 3.29 do not know the switch.
    /// Source: SQLite, "Double-quoted String Literals Are Accepted".
    package func refuseDoubleQuotedStrings() {
        _ = cs_config_double_quoted_strings(handle, 0, 0)
    }

    /// Makes new files carry the header of SQLite's first schema format.
    package func useLegacyFileFormat() throws {
        if cs_config_legacy_file_format(handle, 1) != SQLITE_OK { try execute("PRAGMA legacy_file_format = ON") }
    }

    /// Refuses SQL that can damage the file.
    ///
    /// Engines before SQLite 3.26 do not know the switch.
    package func beDefensive() {
        _ = cs_config_defensive(handle, 1)
    }

    /// Runs `body` while no trigger fires.
    package func withoutTriggers<Result>(_ body: () throws -> Result) throws -> Result {
        try check(cs_config_triggers(handle, 0))
        // Switching them on again fails no more than switching them off did.
        defer { _ = cs_config_triggers(handle, 1) }
        return try body()
    }
}

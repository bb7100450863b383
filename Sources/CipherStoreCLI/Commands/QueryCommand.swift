internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite

extension Command {
    static let query = Command(
        name: "query",
        summary: "Run one read-only SQL statement and print its rows.",
        operands: [.database, .init("SQL", "One statement, which must not write to the database.")],
        options: KeyOptions.key.all + [QueryCommand.csv, CipherOptions.detect, CipherOptions.compatibility],
        notes: [
            "By default, rows are printed as a table. Control characters and bytes that are not UTF-8 are escaped, and "
                + "blobs are printed as X'hex'. With --csv, rows are printed in the format of RFC 4180. NULL is an "
                + "empty field and empty text is \"\". Text is printed byte for byte, but is escaped if the output is "
                + "a terminal. With --json, rows are printed as an array of objects. A blob, or text that is not valid "
                + "UTF-8, is printed as an object with its bytes in base64.",
            "A plaintext file requires no key.",
        ],
        examples: [
            "query app.db --key-file key \"SELECT count(*) FROM chat\"",
            "query app.db --key-env APP_KEY --csv \"SELECT * FROM chat\"",
        ],
        run: QueryCommand.run)
}

enum QueryCommand {
    static let csv = Option("csv", "Print the rows as comma-separated values.")

    static func run(_ invocation: Invocation) throws -> ExitStatus {
        guard !invocation.has(csv) || !invocation.has(.json) else {
            throw CommandFailure.usage("--csv and --json cannot be used together")
        }
        let path = invocation.operands[0]
        let sql = invocation.operands[1]
        let formats = try CipherOptions.formats(invocation)
        let reader = try DatabaseReader(path: path)
        do {
            try KeyOptions.key.reading(invocation) { provider in
                try reader.read(provider: provider, formats: formats) { connection, settings in
                    if let warning = settings?.authenticationWarning { Output.complain("warning: \(warning)") }
                    try run(sql, connection) { names in
                        if invocation.has(.json) { return JSONRows(names: names) }
                        return invocation.has(csv) ? CSVRows(names: names) : TableRows(names: names)
                    }
                }
            }
        } catch let error as DatabaseError {
            throw failure(error, reader)
        }
        return .done
    }

    private static func run(
        _ sql: String, _ connection: Connection, _ makeWriter: ([String]) -> any RowWriter
    ) throws {
        connection.beDefensive()
        try connection.allowLongResults()
        try connection.refuseWhatOutlastsLoans()
        try connection.transaction(.deferred) {
            try connection.lend { try run(sql, lent: $0, makeWriter) }
            try connection.checkAuthenticity()
        }
    }

    private static func run(
        _ sql: String, lent connection: Connection, _ makeWriter: ([String]) -> any RowWriter
    ) throws {
        let statement = try Statement(SQL(text: sql), on: connection)
        guard statement.isReadOnly else { throw readOnly(connection.path, "it may write to the database") }
        let writer = makeWriter((0..<statement.columnCount).map(statement.columnName))
        // Nothing is printed before the first row is read, so that a failure before then can still be reported as JSON.
        var hasBegun = false
        try connection.forEachRow(SQL(text: sql)) { row in
            if !hasBegun { try writer.begin() }
            hasBegun = true
            try writer.write(row)
        }
        if !hasBegun { try writer.begin() }
        try writer.end()
    }

    private static func readOnly(_ path: String, _ reason: String) -> CommandFailure {
        CommandFailure(
            .permission, "readOnly", path: path, "query refuses this statement: \(reason)",
            advice: "use a statement that only reads data; nothing was changed")
    }

    /// Distinguishes errors in the SQL from errors in the file.
    private static func failure(_ error: DatabaseError, _ reader: DatabaseReader) -> any Error {
        guard error.code != DatabaseError.unauthorized else { return readOnly(reader.path, error.message) }
        let isOfFile =
            error.isCorrupt || error.isBusy || error.isFull || error.isInputOutput || error.isPermission
        guard !isOfFile else { return reader.failure(error) }
        // No statement, more than one, or one with parameters, which have no values here.
        guard error.code != DatabaseError.misuse else {
            return CommandFailure.usage("query requires one SQL statement without parameters")
        }
        return CommandFailure(
            error.isOutOfMemory ? .internalFailure : .badData, "sql", path: reader.path, error.message,
            advice: "correct the SQL statement")
    }
}

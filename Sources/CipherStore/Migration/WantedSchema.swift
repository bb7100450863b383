package import CipherSQLite

/// The schema that a source wants, as SQLite itself understood its statements.
///
/// The statements run in a private database, so wrong SQL is found before anything is changed.
package struct WantedSchema {
    /// The names that things had before.
    package struct Renames: Sendable, Equatable {
        /// New table name to old.
        package var tables: [SQLName: String] = [:]
        /// Table, by its new name, to new column name to old.
        package var columns: [SQLName: [SQLName: String]] = [:]

        package init() {}
    }

    /// A view, index or trigger that is wanted.
    package typealias Object = DatabaseState.Object

    /// The wanted tables, in the order in which they were added.
    package private(set) var tables: [TableShape] = []
    /// The wanted views, indexes and triggers, in the order in which they were added.
    package private(set) var objects: [Object] = []
    /// The names that things had before.
    package var renames = Renames()

    private let connection: Connection

    /// A schema without anything.
    package init(collations: [Collation] = []) throws {
        connection = try Self.privateDatabase(collations)
    }

    /// Adds what one CREATE statement makes.
    ///
    /// - Parameter place: Where the statement stands, for errors, such as `dbTables[2].chat`.
    /// - Throws: ``StoreError`` with `migration` where SQLite refuses it, or where it makes nothing or several things.
    package mutating func add(_ sql: String, at place: String) throws {
        do {
            try connection.execute(SQL(text: sql))
        } catch let error as DatabaseError {
            throw StoreError(
                .migration, "\(place) cannot be used: SQLite refuses it", advice: "correct it; nothing was changed",
                underlying: error)
        }
    }

    /// A checksum of everything that is wanted, which formatting does not change.
    package var fingerprint: String { Checksum().text }

    /// Without a name SQLite makes a private database, which it removes when it is closed.
    ///
    /// It holds no rows; the settings keep even the schema from being written anywhere.
    static func privateDatabase(_ collations: [Collation]) throws -> Connection {
        let connection = try Connection(path: "", mode: .create)
        connection.allowDoubleQuotedStrings()
        try connection.execute("PRAGMA journal_mode = MEMORY")
        try connection.execute("PRAGMA cache_spill = OFF")
        for collation in collations { try connection.register(collation) }
        return connection
    }
}

internal import CipherErrors
public import CipherSQLite
public import Foundation

/// Writes databases as apps that updated in steps did: statement by statement, without a transaction, ignoring errors.
public struct LegacyStepsApp: Sendable {
    /// The folder of the property lists.
    public let folder: URL

    /// An app with the steps of a folder.
    public init(_ folder: URL) {
        self.folder = folder
    }

    /// The example of numbered steps.
    public static let numbered = LegacyStepsApp(Repository.examples.appending(path: "NumberedSteps/updates"))
    /// The example of app versions.
    public static let appVersions = LegacyStepsApp(Repository.examples.appending(path: "AppVersions/scripts"))

    /// The statements of a property list.
    public func statements(_ name: String) throws -> [String] {
        let data = try Data(contentsOf: folder.appending(path: "\(name).plist"))
        return try PropertyListSerialization.propertyList(from: data, format: nil) as? [String] ?? []
    }

    /// Runs property lists as the app did.
    ///
    /// - Parameter leavingOut: The places of statements that failed or never ran, such as `sql_update_3[1]`.
    public func run(_ names: [String], on connection: Connection, leavingOut: Set<String> = []) throws {
        for name in names {
            for (index, sql) in try statements(name).enumerated() where !leavingOut.contains("\(name)[\(index)]") {
                do {
                    try connection.executeScript(text: sql)
                } catch is DatabaseError {
                    // The app did the same.
                    continue
                }
            }
        }
    }

    /// Updates a new database to a numbered version, and records the next update to run.
    public func write(version: Int, to connection: Connection, leavingOut: Set<String> = []) throws {
        try connection.executeScript(
            text: "CREATE TABLE db_version (db_version_num INTEGER); INSERT INTO db_version VALUES (\(version + 1))")
        try run(Self.names(version), on: connection, leavingOut: leavingOut)
    }

    /// The property lists that lead to a numbered version.
    public static func names(_ version: Int) -> [String] {
        ["sql_default"] + stride(from: 2, through: version, by: 1).map { "sql_update_\($0)" }
    }

    /// Updates a new database to an app version, and records the version for the account.
    public func write(appVersion: String, updates: [String], to connection: Connection) throws {
        try connection.executeScript(
            text: """
                CREATE TABLE tb_clientstage (id TEXT, tableno TEXT, version TEXT);
                INSERT INTO tb_clientstage VALUES ('1', '0', '\(appVersion)'), ('1', '7', '99');
                """)
        try run(["sql_default"] + updates.map { "sql_update_\($0)" }, on: connection)
    }

    /// The schema as lines, without the record of the version and CipherStore's own table.
    public static func schema(_ connection: Connection) throws -> [String] {
        var lines: [String] = []
        var tables: [String] = []
        try connection.forEachRow(
            """
            SELECT type, name, sql FROM sqlite_master
            WHERE name NOT IN ('db_version', 'tb_clientstage', 'cipherstore_history') AND name NOT LIKE 'sqlite_%'
            ORDER BY type, name
            """
        ) { row in
            if row.value(at: 0) == .text("table") {
                tables.append(try row.get(at: 1))
            } else {
                lines.append("\(row.value(at: 0)) \(row.value(at: 1)): \(row.value(at: 2))")
            }
        }
        for table in tables {
            try connection.forEachRow(SQL(text: "PRAGMA table_info(\(SQL.quoted(identifier: table)))")) { row in
                lines.append("\(table): " + (0..<row.count).map { "\(row.value(at: $0))" }.joined(separator: ", "))
            }
        }
        return lines
    }
}

internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
package import CipherSQLite
package import CipherSQLiteFormat

/// A schema whose entries were tried one by one in separate databases in memory, so that a damaged entry does not affect
/// the others.
package struct SchemaForms {
    package private(set) var tables: [TableForm] = []
    /// Views and triggers.
    package private(set) var others: [SchemaText] = []
    package private(set) var virtualTables: [SchemaText] = []
    /// Entries that SQLite does not accept, by type and name, with the reason.
    package private(set) var rejected: [Rejected] = []

    /// Whether an entry that SQLite does not accept may belong to a table with rows.
    package var mayLackTables: Bool {
        rejected.contains { $0.entry.root != 0 && !["index", "view", "trigger"].contains($0.entry.type) }
    }

    package struct Rejected: Sendable {
        package let entry: SchemaText
        package let reason: String
    }

    /// Reads a schema.
    ///
    /// SQLite reads the whole schema table after each CREATE, so the tables and views are tried in groups, each with the
    /// indexes and triggers on them.
    ///
    /// - Throws: ``StoreError`` with the code `missingCollation` if a table or an index sorts by a collation that is
    ///   not registered; ``DatabaseError`` if memory is exhausted.
    package init(_ entries: [SchemaText], _ encoding: TextEncoding, extensions: SQLExtensions, path: String) throws {
        var groups: [[SchemaText]] = []
        var numbers: [[UInt8]: Int] = [:]
        for entry in entries where entry.type == "table" || entry.type == "view" {
            if groups.last.map({ $0.count >= Self.groupSize }) ?? true { groups.append([]) }
            if numbers[entry.name.folded] == nil { numbers[entry.name.folded] = groups.count - 1 }
            groups[groups.count - 1].append(entry)
        }
        if groups.isEmpty { groups.append([]) }
        for entry in entries {
            switch entry.type {
            case "table", "view": break
            case "index", "trigger":
                let number = entry.sqlOwner.flatMap { numbers[$0.folded] } ?? numbers[entry.table.folded]
                groups[number ?? groups.count - 1].append(entry)
            default: rejected.append(Rejected(entry: entry, reason: "SQLite has no schema objects of this type"))
            }
        }
        var names = SchemaNames()
        for group in groups {
            var scratch = try SchemaScratch(group, encoding, extensions, path)
            defer { scratch.close() }
            try scratch.run(&names)
            tables += scratch.tables
            others += scratch.others
            virtualTables += scratch.virtualTables
            rejected += scratch.rejected
        }
    }

    private static let groupSize = 200
}

/// The names that entries of a schema have taken.
///
/// Tables, views and indexes share one set of names; triggers have a separate one.
struct SchemaNames {
    private var taken: Set<[UInt8]> = []
    private var triggers: Set<[UInt8]> = []

    func has(_ entry: SchemaText) -> Bool { (entry.type == "trigger" ? triggers : taken).contains(entry.name.folded) }

    mutating func take(_ entry: SchemaText) {
        if entry.type == "trigger" { triggers.insert(entry.name.folded) } else { taken.insert(entry.name.folded) }
    }
}

extension SchemaText {
    /// The table or view on which the SQL of an index or trigger creates it, which may differ from the entry's table.
    fileprivate var sqlOwner: SchemaName? {
        let tokens = SQLTokens(text, first: 64).tokens
        guard let on = tokens.firstIndex(where: { $0.isKeyword("on") }), on + 1 < tokens.count else { return nil }
        return SchemaName(bytes: tokens[on + 1].name.utf8)
    }
}

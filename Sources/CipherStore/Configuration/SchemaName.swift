/// The name of a table or column, equal to another where SQLite takes them as the same.
///
/// SQLite folds the 26 ASCII letters only, and compares the other bytes as they are. Source: SQLite, "The COLLATE
/// Operator": NOCASE.
struct SchemaName: Hashable {
    private let folded: [UInt8]

    init(_ name: String) {
        folded = name.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }

    /// The prefix of names that SQLite and CipherStore keep for themselves; `nil` for a name that is free.
    var reservedPrefix: String? { ["sqlite_", "cipherstore_"].first { folded.starts(with: $0.utf8) } }

    /// Why `name` cannot be a name; `nil` where it can.
    static func fault(of name: String) -> String? {
        if name.isEmpty { return "is empty" }
        return name.utf8.contains(0) ? "contains a NUL character" : nil
    }
}

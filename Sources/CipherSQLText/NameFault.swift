/// What keeps a text of the configuration from being the name of a table, column or index.
extension SQLName {
    /// The prefix of names that SQLite and CipherStore keep for themselves; `nil` for a name that is free.
    package var reservedPrefix: String? { isOfSQLite ? "sqlite_" : isOfCipherStore ? "cipherstore_" : nil }

    /// Why `name` cannot be a name; `nil` if it can.
    package static func fault(of name: String) -> String? {
        if name.isEmpty { return "is empty" }
        return name.utf8.contains(0) ? "contains a NUL character" : nil
    }
}

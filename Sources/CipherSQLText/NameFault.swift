/// The reasons why a text of the configuration cannot be the name of a table, column or index.
extension SQLName {
    /// The reserved prefix of the name, SQLite's or CipherStore's; `nil` if the name has none.
    package var reservedPrefix: String? { isOfSQLite ? "sqlite_" : isOfCipherStore ? "cipherstore_" : nil }

    /// Returns the reason why `name` cannot be a name, as the end of a sentence; `nil` if it can be one.
    package static func fault(of name: String) -> String? {
        if name.isEmpty { return "is empty" }
        return name.utf8.contains(0) ? "contains a NUL character" : nil
    }
}

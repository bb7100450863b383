public import CipherSQLite

extension Connection {
    /// The size of the pages in bytes, which SQLCipher tells as text of an encrypted database.
    public var pageSize: Int {
        get throws {
            switch try value(Value.self, "PRAGMA page_size") {
            case .integer(let size): Int(size)
            case .text(let size): Int(size) ?? 0
            default: 0
            }
        }
    }
}

public import CipherSQLite

extension Connection {
    /// The size of the pages in bytes.
    ///
    /// SQLCipher returns it as text for an encrypted database.
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

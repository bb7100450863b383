public import CipherSQLite

extension Engine {
    /// Whether the engine was compiled with an option, such as `ENABLE_FTS5`.
    public func wasBuilt(with option: String) -> Bool {
        let connection = try? Connection(path: "", mode: .create)
        return (try? connection?.value(Int.self, "SELECT sqlite_compileoption_used(\(option))")) == 1
    }
}

extension CipherSettings {
    /// Every format of the engine with its defaults, the newest first, including format 1.
    public static let everyFormat = (1...Engine.current.defaultCompatibility).reversed().map {
        CipherSettings(compatibility: $0)
    }
}

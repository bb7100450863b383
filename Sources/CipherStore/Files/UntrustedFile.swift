import CipherSQLite

extension Connection {
    /// Bounds what the schema and the values of a file may cost whoever reads it.
    ///
    /// - Parameter path: The database, whose log counts too.
    func distrust(_ path: String) throws {
        distrust(fileSize: try (FileSystem.size(path) ?? 0) + (FileSystem.size(path + "-wal") ?? 0))
    }
}

internal import CipherPageSealing
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Numbers of a database's header that no SQL tells.
struct HeaderFields {
    /// SQLite's "schema format number", 1 to 4; 0 before the first table.
    let schemaFormat: Int
    /// What `PRAGMA default_cache_size` was set to; 0 for nothing.
    let defaultCacheSize: Int

    /// Reads them from a file.
    ///
    /// - Parameter key: The key of the file, which has opened it; `nil` for a plaintext one.
    init(of path: String, key: FileKey?) throws {
        let file = try DatabaseFile(path: path)
        let header = try key.map {
            FileHeader(bytes: try file.firstPage(key: $0.key, settings: $0.settings), fileSize: try file.size())
        }
        let numbers = try header ?? FileHeader(file)
        schemaFormat = numbers.schemaFormat
        defaultCacheSize = numbers.defaultCacheSize
    }
}

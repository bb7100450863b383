internal import CipherPageSealing
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Fields of a database's header that SQL cannot read.
struct HeaderFields {
    /// SQLite's "schema format number", 1 to 4; 0 before the first table.
    let schemaFormat: Int
    /// The value that `PRAGMA default_cache_size` was set to; 0 if it was not set.
    let defaultCacheSize: Int

    /// Reads the fields from a file.
    ///
    /// - Parameter key: The key that has opened the file; `nil` for a plaintext file.
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

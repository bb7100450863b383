internal import CCipherEngine

extension Connection {
    /// Attaches a file that is still empty.
    ///
    /// The file will be plaintext, unless a key is set before its first page is written.
    ///
    /// - Parameters:
    ///   - layer: The file layer for the file.
    ///   - pages: The page size and the number of bytes left free at the end of each page, both in bytes, for a file
    ///     that has no key because the layer encrypts its pages.
    package func attachEmpty(
        _ layer: FileLayer, as schema: String, pages: (size: Int, reserved: Int)? = nil
    ) throws {
        let uri = SQL.quoted(text: FileURI.text("copy", query: "mode=rw&vfs=\(layer.name)"))
        layers[schema] = layer
        try execute(SQL(text: "ATTACH \(uri) AS \(SQL.quoted(identifier: schema)) KEY ''"))
        guard let pages else { return }
        try execute(SQL(text: "PRAGMA \(SQL.quoted(identifier: schema)).page_size = \(pages.size)"))
        var reserved = Int32(pages.reserved)
        try check(sqlite3_file_control(handle, schema, Self.reserveBytes, &reserved))
    }

    /// Attaches a plaintext file that exists.
    ///
    /// - Parameter isReadOnly: Whether the file must not be written, not even to roll back its journal.
    package func attachPlaintext(_ path: String, as schema: String, isReadOnly: Bool = false) throws {
        // Without its own layer, the file would be opened through that of the main file, whose pages are different.
        let layer = try FileLayer(guarding: path)
        layers[schema] = layer
        let mode = isReadOnly ? "mode=ro" : "mode=rw"
        let uri = SQL.quoted(text: FileURI.text(path, query: "\(mode)&vfs=\(layer.name)"))
        try execute(SQL(text: "ATTACH \(uri) AS \(SQL.quoted(identifier: schema)) KEY ''"))
    }

    /// The value of `SQLITE_FCNTL_RESERVE_BYTES`, which older headers do not define.
    private static let reserveBytes: Int32 = 38
}

internal import CCipherEngine

extension Connection {
    /// Attaches a file that is empty yet: plaintext, unless it is given a key before its first page is written.
    ///
    /// - Parameters:
    ///   - layer: Leads to the file.
    ///   - pages: Their size and how many bytes at their ends are left free, both in bytes, of a file that gets no key
    ///     because the layer encrypts its pages.
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
    /// - Parameter isReadOnly: For a file that must not even have its journal rolled back.
    package func attachPlaintext(_ path: String, as schema: String, isReadOnly: Bool = false) throws {
        // Its pages are not those of the main file, whose layer it would be opened through.
        let layer = try FileLayer(guarding: path)
        layers[schema] = layer
        let mode = isReadOnly ? "mode=ro" : "mode=rw"
        let uri = SQL.quoted(text: FileURI.text(path, query: "\(mode)&vfs=\(layer.name)"))
        try execute(SQL(text: "ATTACH \(uri) AS \(SQL.quoted(identifier: schema)) KEY ''"))
    }

    /// `SQLITE_FCNTL_RESERVE_BYTES`, which older headers do not name.
    private static let reserveBytes: Int32 = 38
}

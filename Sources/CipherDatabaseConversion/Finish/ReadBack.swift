internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Lends a connection that writes to the copy, and reads back what it wrote.
///
/// What a migration makes has no original to be compared with, and SQLite does not look whether a disk that acknowledged a
/// page has it.
struct ReadBack {
    let paths: DatabasePaths
    let copy: NewFile
    /// The copy's key; `nil` for a plaintext one.
    let key: FileKey?

    /// Closes the connection behind `body`.
    ///
    /// - Throws: ``StoreError`` with `proofFailed` if a page is not in the file as it was written.
    func lending<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        let (result, written) = try write(body)
        if let page = try written.firstLost(in: copy.content) {
            throw StoreError.disk(
                paths.database, "page \(page) of the copy is not what was written: the disk has lost it",
                .proofFailed, changed: .nothing)
        }
        return result
    }

    private func write<Result>(_ body: (Connection) throws -> Result) throws -> (Result, WrittenPages) {
        let connection = try ConnectionProfile.plain(.readWrite).open(copy.path, through: copy.layer())
        defer { connection.close() }
        let written = try WrittenPages(of: connection)
        defer { written.stop() }
        if let key { try connection.setKey(key.key, settings: key.settings) }
        return (try StoreError.about(paths) { try body(connection) }, written)
    }
}

internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Provides a connection that writes to the copy, and then reads back what it wrote.
///
/// The results of a migration have no original to be compared with, and SQLite does not check whether a disk actually
/// stored a page that it acknowledged.
struct ReadBack {
    let paths: DatabasePaths
    let copy: NewFile
    /// The copy's key; `nil` for a plaintext copy.
    let key: FileKey?

    /// Passes `body` a connection, and closes it afterwards.
    ///
    /// - Throws: ``StoreError`` with the code `proofFailed` if a page in the file differs from what was written.
    func lending<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        let (result, written) = try write(body)
        if let page = try written.firstLost(in: copy.content) {
            throw StoreError.disk(
                paths.database, "page \(page) of the copy, read back from disk, differs from what was written",
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

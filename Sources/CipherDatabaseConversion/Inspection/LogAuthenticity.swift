internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Checks the log of an encrypted file before SQLite uses it, or merges it into the file.
///
/// Everyone who can write to the folder can write a log that SQLite accepts.
struct LogAuthenticity {
    let paths: DatabasePaths
    let key: FileKey

    /// Refuses a log with another page size, one of whose pages the key does not open, one that would cut the file, or one
    /// that changes a readable header.
    ///
    /// Format 1 authenticates nothing, so only the salt on page 1 is compared.
    ///
    /// - Parameter header: The header of the log, which contains a committed transaction.
    /// - Throws: ``StoreError`` with the code `staleSidecar` or `corrupt`.
    func check(_ header: LogHeader, _ log: SidecarFile) throws {
        guard header.pageSize == key.settings.pageSize else {
            throw StoreError.staleSidecar(
                paths,
                "the page size is \(header.pageSize) bytes in the -wal but \(key.settings.pageSize) bytes in the file",
                "-wal")
        }
        let opening = try PageOpening(key)
        var fault: String?
        // A running writer may overwrite a page of the log while it is read, but not twice.
        for _ in 1...2 {
            guard let versions = try header.committedPages(in: log) else { return }
            fault = nil
            switch try SidecarAuthenticity(versions, in: log, opening) {
            case .all: break
            case .some: fault = "a page in the -wal is not authentic"
            case .none: fault = "no page in the -wal is authentic"
            }
            if fault == nil, !key.settings.isAuthenticated { return }
            let file = try DatabaseFile(path: paths.database)
            if fault == nil, try SidecarEffect(versions, in: log, on: file, key)?.cutsUsedPages() == true {
                fault = "the number of pages in the -wal is less than the database uses"
            }
            if fault == nil, key.settings.hasReadableHeader, let offset = versions.offsets[1],
                let logged = try log.read(at: offset, count: header.pageSize),
                try !ReadableHeader.agree(
                    file.read(at: 0, count: header.pageSize), logged, modes: 2...2)
            {
                fault = "the page 1 in the -wal has another header than the file"
            }
            if fault == nil { return }
        }
        if let fault { throw StoreError.damaged(paths.database, fault) }
    }
}

package import CipherErrors
internal import CipherSystemFiles

extension StoreError {
    /// Reads a table of CipherStore's own, into which another program may have written.
    ///
    /// - Throws: ``StoreError`` with `corrupt` that names the table, where a value has another type than CipherStore writes.
    package static func readingOwnTable<Result>(
        _ table: String, _ connection: Connection, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let error as DatabaseError where error.code == DatabaseError.mismatch {
            throw StoreError(
                .corrupt, path: connection.path, "a row of \(table) holds a value that CipherStore did not write there",
                advice: "correct that value or remove its row; nothing was changed", underlying: error)
        }
    }

    /// A failure to read or write a database, with what to do about it.
    ///
    /// - Parameter writerVersion: The SQLite version that wrote the file last: a newer one than the engine's may have
    ///   left a schema that the engine cannot read.
    package static func reading(_ error: DatabaseError, path: String, writerVersion: Int? = nil) -> StoreError {
        if error.isCorrupt, error.message.contains("malformed database schema"), let writerVersion,
            writerVersion > Engine.current.sqliteVersionNumber
        {
            return StoreError(
                .engineTooOld, path: path,
                "the schema was written by SQLite \(writerVersion) and needs a newer engine than "
                    + "SQLite \(Engine.current.sqliteVersion)",
                advice: "link SQLCipher 4", underlying: error)
        }
        // A record that tells of a value beyond SQLite's limit is what old engines make of a damaged page.
        if error.isCorrupt || error.isTooBig {
            return StoreError(
                .corrupt, path: path, "the database is damaged", advice: "restore the file from a backup",
                underlying: error)
        }
        if error.isBusy {
            return StoreError(
                .busy, path: path, "another connection uses the database", advice: "close it and try again",
                underlying: error)
        }
        if error.isFull {
            return StoreError(
                .noSpace, path: path, "there is no room on the disk", advice: "free some space and try again",
                underlying: error)
        }
        if error.isMoved {
            return StoreError(
                .busy, path: path, "another program replaced or removed the file while it was open",
                advice: "see who else uses the folder, and try again", underlying: error)
        }
        if error.isCannotOpen, (try? FileSystem.exists(path)) == false {
            return StoreError(
                .missingFile, path: path, "the file is gone: another program removed it meanwhile",
                advice: "see who else uses the folder, and try again", underlying: error)
        }
        if error.isPermission || error.isCannotOpen && !FileSystem.canWriteInFolder(FileSystem.split(path).folder) {
            return StoreError(
                .permission, path: path,
                "the file or its folder cannot be written, and SQLite keeps a log or journal beside the file",
                advice: "give this user the permission", underlying: error)
        }
        if error.code == DatabaseError.mismatch {
            return StoreError(
                .corrupt, path: path, "the database holds a value of another type than belongs there",
                advice: "see which column the message names, and correct the value", underlying: error)
        }
        if error.code == DatabaseError.generic {
            return StoreError(
                .corrupt, path: path, "SQLite cannot work with the database",
                advice: "see what its message names; a schema may need what only the app has", underlying: error)
        }
        return StoreError(
            .inputOutput, path: path, "SQLite could not do its work", advice: "check the disk and try again",
            underlying: error)
    }
}

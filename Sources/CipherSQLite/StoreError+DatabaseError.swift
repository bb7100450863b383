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
                advice: "correct that value or remove its row", changed: .nothing, underlying: error)
        }
    }
}

/// What was being done with a database when SQLite failed.
package enum DatabaseWork {
    /// It was read or written as it is.
    case use
    /// It was copied, under another key or none.
    case conversion
    /// A step of a schema migration, such as `addColumn chat.draft`.
    case migration(String)
}

extension StoreError {
    /// What a failure of SQLite means to the caller, with what to do about it.
    ///
    /// - Parameters:
    ///   - work: What was being done with the database.
    ///   - writerVersion: The SQLite version that wrote the file last: a newer one than the engine's may have left a
    ///     schema that the engine cannot read.
    package init(_ error: DatabaseError, path: String, during work: DatabaseWork, writerVersion: Int? = nil) {
        let cause = FailureCause(error, path: path, writerVersion: writerVersion)
        switch (work, cause) {
        case (.migration(let action), _):
            let (code, advice) = cause.ofMigration
            self.init(
                code, path: path, "the schema migration failed at \(action)",
                advice: "\(advice); nothing was changed", underlying: error)
        case (.conversion, .interrupted):
            self = .cancelled(path)
        case (.conversion, .constraint):
            // A copy has no constraints but the keys of its trees, which an undamaged original keeps.
            self.init(
                .corrupt, path: path, "the database is damaged: it holds the same key more than once",
                advice: "restore the file from a backup; nothing was changed", underlying: error)
        case (.conversion, _), (.use, _):
            let (code, detail, advice) = cause.ofUse
            self.init(code, path: path, detail, advice: advice, underlying: error)
        }
    }
}

/// Why SQLite failed, told by its result code and by what lies at the path.
private enum FailureCause {
    case newerSchema(Int)
    case damaged
    case tooBig
    case busy
    case full
    case moved
    case gone
    case cannotOpen
    case permission
    case interrupted
    case constraint
    case mismatch
    case generic
    case inputOutput
    case other

    init(_ error: DatabaseError, path: String, writerVersion: Int?) {
        self =
            if let writerVersion, writerVersion > Engine.current.sqliteVersionNumber, error.isMalformedSchema {
                .newerSchema(writerVersion)
            } else if error.isCorrupt {
                .damaged
            } else if error.isTooBig {
                .tooBig
            } else if error.isBusy {
                .busy
            } else if error.isFull {
                .full
            } else if error.isMoved {
                .moved
            } else if error.isPermission {
                .permission
            } else if error.isCannotOpen {
                (try? FileSystem.exists(path)) == false
                    ? .gone
                    : FileSystem.canWriteInFolder(FileSystem.split(path).folder) ? .cannotOpen : .permission
            } else if error.isInterrupted {
                .interrupted
            } else if error.isConstraintViolation {
                .constraint
            } else if error.code == DatabaseError.mismatch {
                .mismatch
            } else if error.code == DatabaseError.generic {
                .generic
            } else if error.isInputOutput {
                .inputOutput
            } else {
                .other
            }
    }

    /// What it means to who reads or writes the database.
    var ofUse: (StoreError.Code, detail: String, advice: String) {
        switch self {
        case .newerSchema(let version):
            (
                .engineTooOld,
                "the schema was written by SQLite \(version) and needs a newer engine than "
                    + "SQLite \(Engine.current.sqliteVersion)", "link SQLCipher 4"
            )
        // A record that tells of a value beyond SQLite's limit is what old engines make of a damaged page.
        case .damaged, .tooBig: (.corrupt, "the database is damaged", "restore the file from a backup")
        case .busy: (.busy, "another connection uses the database", "close it and try again")
        case .full: (.noSpace, "there is no room on the disk", "free some space and try again")
        case .moved:
            (
                .busy, "another program replaced or removed the file while it was open",
                "see who else uses the folder, and try again"
            )
        case .gone:
            (
                .missingFile, "the file is gone: another program removed it meanwhile",
                "see who else uses the folder, and try again"
            )
        case .permission:
            (
                .permission,
                "the file or its folder cannot be written, and SQLite keeps a log or journal beside the file",
                "give this user the permission"
            )
        case .mismatch:
            (
                .corrupt, "the database holds a value of another type than belongs there",
                "see which column the message names, and correct the value"
            )
        case .generic:
            (
                .corrupt, "SQLite cannot work with the database",
                "see what its message names; a schema may need what only the app has"
            )
        case .cannotOpen, .interrupted, .constraint, .inputOutput, .other:
            (.inputOutput, "SQLite could not do its work", "check the disk and try again")
        }
    }

    /// What it means to who migrates the schema, which may be what SQLite refuses.
    var ofMigration: (StoreError.Code, advice: String) {
        switch self {
        case .busy, .moved: (.busy, "another connection uses the database; try again")
        case .full: (.noSpace, "make room and try again")
        case .interrupted: (.cancelled, "try again")
        case .permission, .gone, .cannotOpen: (.permission, "make the file and its folder writable")
        case .inputOutput: (.inputOutput, "check the disk and try again")
        case .damaged, .newerSchema: (.corrupt, "verify the file")
        case .tooBig, .constraint, .mismatch, .generic, .other:
            (.migration, "correct the schema or the rows that it does not fit")
        }
    }
}

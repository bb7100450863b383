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
                .corrupt, path: connection.path, "a row of \(table) contains a value that CipherStore did not write",
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
    /// Works with a database, and turns SQLite's report into a typed error.
    ///
    /// - Throws: What `body` throws, and ``StoreError`` in the place of ``DatabaseError``.
    package static func typing<Result>(
        _ path: String, during work: DatabaseWork = .use, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error, path: path, during: work)
        }
    }

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
            self = cause.ofMigration(path, "the schema migration failed at \(action)", error)
        case (.conversion, .interrupted):
            self = .cancelled(path)
        case (.conversion, .constraint):
            // A copy has no constraints but the keys of its trees, which an undamaged original keeps.
            self = .damaged(path, "the database is damaged: it holds the same key more than once", underlying: error)
        case (.conversion, _), (.use, _):
            self = cause.ofUse(path, error)
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
    case unregistered(UnregisteredName)
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
            } else if let name = error.unregistered {
                .unregistered(name)
            } else if error.code == DatabaseError.generic {
                .generic
            } else if error.isInputOutput {
                .inputOutput
            } else {
                .other
            }
    }

    /// What it means to who reads or writes the database.
    func ofUse(_ path: String, _ error: DatabaseError) -> StoreError {
        func failure(_ code: StoreError.Code, _ detail: String, _ advice: String) -> StoreError {
            StoreError(code, path: path, detail, advice: advice, underlying: error)
        }
        return switch self {
        case .newerSchema(let version):
            failure(
                .engineTooOld,
                "the schema was written by SQLite \(version) and needs a newer engine than "
                    + "SQLite \(Engine.current.sqliteVersion)", "link SQLCipher 4")
        // A record that tells of a value beyond SQLite's limit is what old engines make of a damaged page.
        case .damaged, .tooBig: .damaged(path, "the database is damaged", changed: nil, underlying: error)
        case .busy:
            .busy(path, "another connection uses the database", retry: .afterClosing, changed: nil, underlying: error)
        case .full: .noSpace(path, "the disk is full", underlying: error)
        case .moved:
            .busy(
                path, "another program replaced or removed the file while it was open", retry: .afterSearching,
                changed: nil, underlying: error)
        case .gone:
            failure(
                .missingFile, "the file is gone: another program removed it meanwhile",
                StoreError.Retry.afterSearching.rawValue)
        case .permission:
            .permission(
                path, "the file or its folder cannot be written, and SQLite keeps a log or journal beside the file",
                .writeWithFolder, underlying: error)
        case .mismatch:
            failure(
                .corrupt, "the database contains a value of the wrong type",
                "correct the value in the column that the message names")
        case .unregistered(let name):
            failure(
                name.code, "the schema needs \(name.description), which is not registered", name.advice)
        case .generic:
            failure(
                .corrupt, "SQLite cannot use the database",
                "see SQLite's message; a schema may need a function or collation of the app")
        case .cannotOpen, .interrupted, .constraint, .inputOutput, .other:
            .disk(path, "SQLite failed", underlying: error)
        }
    }

    /// What it means to who migrates the schema, which may be what SQLite refuses.
    func ofMigration(_ path: String, _ detail: String, _ error: DatabaseError) -> StoreError {
        func failure(_ code: StoreError.Code, _ advice: String) -> StoreError {
            StoreError(code, path: path, detail, advice: advice, changed: .nothing, underlying: error)
        }
        return switch self {
        case .busy, .moved:
            .busy(
                path, "\(detail): another connection uses the database", retry: .afterClosing, underlying: error)
        case .full: .noSpace(path, detail, changed: .nothing, underlying: error)
        case .interrupted: failure(.cancelled, "try again")
        case .permission, .gone, .cannotOpen:
            .permission(path, detail, .writeWithFolder, changed: .nothing, underlying: error)
        case .inputOutput: .disk(path, detail, changed: .nothing, underlying: error)
        case .damaged, .newerSchema: failure(.corrupt, StoreError.damageAdvice)
        case .tooBig, .constraint, .mismatch, .unregistered, .generic, .other:
            .unreachable(path, detail, correct: .schemaOrRows, underlying: error)
        }
    }
}

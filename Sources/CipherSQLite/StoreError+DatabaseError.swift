package import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

extension StoreError {
    /// Reads one of CipherStore's own tables, into which another program may have written.
    ///
    /// - Throws: ``StoreError`` with the code `corrupt`, naming the table, if a value does not have the type that
    ///   CipherStore writes.
    package static func readingOwnTable<Result>(
        _ table: String, _ connection: Connection, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let error as DatabaseError where error.code == DatabaseError.mismatch {
            throw StoreError(
                .corrupt, path: connection.path, "a row of \(table) contains a value that CipherStore did not write",
                advice: "correct the value, or remove the row", changed: .nothing, underlying: error)
        }
    }
}

/// The work on a database during which SQLite failed.
package enum DatabaseWork {
    /// The database was read or written.
    case use
    /// The database was copied, with another key or none.
    case conversion
    /// A step of a schema migration, such as `addColumn chat.draft`, and what to correct if SQLite refuses it.
    case migration(String, correct: StoreError.Correction = .schemaOrRows)
}

extension StoreError {
    /// Runs `body`, and converts SQLite's errors into typed ones.
    ///
    /// - Throws: Any error thrown by `body`, with ``StoreError`` in place of ``DatabaseError``.
    package static func typing<Result>(
        _ path: String, during work: DatabaseWork = .use, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StoreError(error, path: path, during: work)
        }
    }

    /// Creates an error that describes what a failure in SQLite means for the caller, and what to do about it.
    ///
    /// - Parameters:
    ///   - work: The work on the database.
    ///   - writerVersion: The SQLite version that last wrote the file; a version newer than the engine's may have left
    ///     a schema that the engine cannot read.
    package init(_ error: DatabaseError, path: String, during work: DatabaseWork, writerVersion: Int? = nil) {
        let cause = FailureCause(error, path: path, writerVersion: writerVersion)
        switch (work, cause) {
        case (.migration(let action, let correction), _):
            self = cause.ofMigration(path, "the schema migration failed during \(action)", correction, error)
        case (.conversion, .interrupted):
            self = .cancelled(path)
        case (.conversion, .constraint):
            // A copy has no constraints except the keys of its b-trees, and an undamaged original satisfies those.
            self = .damaged(
                path, "the database is damaged: several rows or index entries have the same key", underlying: error)
        case (.conversion, _), (.use, _):
            self = cause.ofUse(path, error)
        }
    }
}

/// The cause of a failure in SQLite, determined from its result code and the file at the path.
private enum FailureCause {
    case newerSchema(Int)
    case damaged
    case beyondSteps
    case beyondTime
    case tooBig
    case busy
    case full
    case moved
    case gone
    case tooManyOpenFiles
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
            } else if error.isBeyondSteps {
                .beyondSteps
            } else if error.isBeyondTime {
                .beyondTime
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
            } else if [EMFILE, ENFILE].contains(error.systemCode) {
                .tooManyOpenFiles
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

    /// Returns the error for code that reads or writes the database.
    func ofUse(_ path: String, _ error: DatabaseError) -> StoreError {
        func failure(_ code: StoreError.Code, _ detail: String, _ advice: String) -> StoreError {
            StoreError(code, path: path, detail, advice: advice, underlying: error)
        }
        return switch self {
        case .newerSchema(let version):
            failure(
                .engineTooOld,
                "SQLite \(Engine.current.sqliteVersion) does not accept the definition of "
                    + "\(error.malformedObject ?? "an object") in the schema; the file was last written by SQLite "
                    + "\(version / 1_000_000).\(version / 1_000 % 1_000).\(version % 1_000)",
                "if the definition needs this newer SQLite, link a newer SQLCipher; if no version of SQLite accepts "
                    + "it, correct or remove the object with the program that wrote it; if the file may be damaged, run "
                    + "cipherstore recover or call DatabaseConverter.recover")
        // On a damaged page, old engines find a record with a value beyond SQLite's limit.
        case .damaged, .beyondSteps, .tooBig: .damaged(path, "the database is damaged", changed: nil, underlying: error)
        case .beyondTime:
            failure(
                .corrupt, error.message,
                "drop or simplify the indexes on expressions, generated columns and constraints in the schema")
        case .busy:
            .busy(
                path, "another connection is using the database", retry: .afterClosing, changed: nil,
                underlying: error)
        case .full: .noSpace(path, "the disk is full", underlying: error)
        case .moved:
            .busy(
                path, "another program replaced or removed the file while it was open", retry: .afterSearching,
                changed: nil, underlying: error)
        case .gone:
            failure(
                .missingFile, "the file no longer exists: another program removed it",
                StoreError.Retry.afterSearching.rawValue)
        case .tooManyOpenFiles: .tooManyOpenFiles(path, underlying: error)
        case .permission:
            .permission(
                path, "the file or its folder is not writable, but SQLite must write a log or journal next to the file",
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
                .corrupt, "SQLite could not run a statement on the database",
                "see SQLite's message; the schema may use a function or collation that only the app provides")
        case .cannotOpen, .interrupted, .constraint, .inputOutput, .other:
            .disk(path, "SQLite failed", underlying: error)
        }
    }

    /// Returns the error for a schema migration, whose statements SQLite may have refused.
    func ofMigration(
        _ path: String, _ detail: String, _ correction: StoreError.Correction, _ error: DatabaseError
    ) -> StoreError {
        func failure(_ code: StoreError.Code, _ advice: String) -> StoreError {
            StoreError(code, path: path, detail, advice: advice, changed: .nothing, underlying: error)
        }
        return switch self {
        case .busy, .moved:
            .busy(
                path, "\(detail): another connection is using the database", retry: .afterClosing, underlying: error)
        case .full: .noSpace(path, detail, changed: .nothing, underlying: error)
        case .interrupted: failure(.cancelled, "try again")
        case .permission, .gone, .cannotOpen:
            .permission(path, detail, .writeWithFolder, changed: .nothing, underlying: error)
        case .tooManyOpenFiles: .tooManyOpenFiles(path, underlying: error)
        case .inputOutput: .disk(path, detail, changed: .nothing, underlying: error)
        case .damaged, .newerSchema: failure(.corrupt, StoreError.damageAdvice)
        // A migration also compares rows of two tables, and the step count depends on SQLite's choice of indexes.
        case .beyondSteps:
            failure(
                .corrupt,
                "check the file with cipherstore verify; if it is not damaged, report this bug with the schema")
        case .beyondTime, .tooBig, .constraint, .mismatch, .unregistered, .generic, .other:
            .unreachable(path, detail, correct: correction, underlying: error)
        }
    }
}

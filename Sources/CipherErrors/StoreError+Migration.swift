extension StoreError {
    /// What to correct so that the database can reach the target schema.
    package enum Correction: String {
        case schema = "correct the schema"
        case schemaOrRows = "correct the schema or the rows"
        case renames = "correct the renames"
        case step = "correct the step"
    }

    /// Creates the error for a database that cannot be migrated to the schema of the configuration.
    ///
    /// - Parameter code: The kind of failure, unless the cause is an unregistered collation, function or tokenizer of
    ///   the app.
    package static func unreachable(
        _ path: String?, _ detail: String, correct: Correction, code: Code = .migration,
        underlying: DatabaseError? = nil
    ) -> StoreError {
        let absent = underlying?.unregistered
        return StoreError(
            absent?.code ?? code, path: path, detail,
            advice: (absent.map { "\($0.advice), or " } ?? "") + correct.rawValue, changed: .nothing,
            underlying: underlying)
    }

    /// Creates the error for a schema object whose name is already used by another object in the database.
    package static func nameInUse(_ path: String?, making object: String, besides present: String) -> StoreError {
        StoreError(
            .migration, path: path,
            "the \(object) cannot be created: the database already has \(present) with that name",
            advice: "rename one of the two objects", changed: .nothing)
    }

    /// Creates the error for a step of the app that left the database in none of the step's intermediate states.
    package static func halfDone(_ path: String?, _ detail: String) -> StoreError {
        StoreError(.migration, path: path, detail, advice: "repair the database by hand", changed: .nothing)
    }

    /// Creates the error for a database, or one of its tables, whose version is newer than the app.
    package static func downgrade(_ path: String?, _ detail: String, orElse remedy: String? = nil) -> StoreError {
        StoreError(
            .downgrade, path: path, detail,
            advice: "install a newer version of the app, or raise the version in its configuration"
                + (remedy.map { ", or \($0)" } ?? ""), changed: .noRow)
    }

    /// Creates the error for a database whose version cannot be determined.
    ///
    /// - Parameters:
    ///   - remedy: Advice that precedes the advice to assume a version.
    ///   - last: Advice that follows the advice to assume a version.
    package static func unknownVersion(
        _ path: String?, _ detail: String, first remedy: String? = nil, last: String? = nil
    ) -> StoreError {
        StoreError(
            .recordedVersion, path: path, detail,
            advice: (remedy.map { "\($0), or " } ?? "")
                + "specify the version of the database with recordedVersion.assume (assumedVersion in Swift)"
                + (last.map { ", or \($0)" } ?? ""), changed: .nothing)
    }
}

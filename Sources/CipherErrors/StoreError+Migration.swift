extension StoreError {
    /// What keeps a database from becoming what the configuration wants.
    package enum Correction: String {
        case schema = "correct the schema"
        case schemaOrRows = "correct the schema or the rows"
        case renames = "correct the renames"
        case step = "correct the step"
    }

    /// The configuration asks for what this database cannot become.
    ///
    /// - Parameter code: What kind of failure it is, where the cause is not that something of the app's own is not registered.
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

    /// What the schema makes has the name of something else in the database.
    package static func nameInUse(_ path: String?, making object: String, besides present: String) -> StoreError {
        StoreError(
            .migration, path: path, "the \(object) cannot be created: the database has \(present) of that name",
            advice: "rename one of them", changed: .nothing)
    }

    /// A step of the app's left what fits no moment of it.
    package static func halfDone(_ path: String?, _ detail: String) -> StoreError {
        StoreError(.migration, path: path, detail, advice: "repair the database by hand", changed: .nothing)
    }

    /// The database, or a table of it, is of a newer version than the app.
    package static func downgrade(_ path: String?, _ detail: String, orElse remedy: String? = nil) -> StoreError {
        StoreError(
            .downgrade, path: path, detail,
            advice: "install a newer version of the app" + (remedy.map { ", or \($0)" } ?? ""), changed: .noRow)
    }

    /// Which version the database has cannot be told.
    ///
    /// - Parameters:
    ///   - remedy: What else can be done than to assume a version.
    ///   - last: The same, where it comes last.
    package static func unknownVersion(
        _ path: String?, _ detail: String, first remedy: String? = nil, last: String? = nil
    ) -> StoreError {
        StoreError(
            .recordedVersion, path: path, detail,
            advice: (remedy.map { "\($0), or " } ?? "")
                + "give the version of such a database with recordedVersion.assume (in Swift assumedVersion)"
                + (last.map { ", or \($0)" } ?? ""), changed: .nothing)
    }
}

/// How often a conversion of a file was begun without an end, and what it has to give back afterwards.
///
/// Written before the first change, removed at every end that the process lives to see. Only a kill leaves it, so that a
/// launch which a watchdog kills each time does not repeat for ever, and a database that was in WAL mode is again in
/// WAL mode even if the launch that left that mode died.
struct AttemptRecord: Equatable {
    var attempts: Int
    var wasWriteAheadLog: Bool

    static func read(_ paths: DatabasePaths) throws -> AttemptRecord? {
        guard let text = try FileSystem.readText(paths.attempt) else { return nil }
        let words = text.split(whereSeparator: \.isWhitespace)
        // A record that cannot be read is one attempt: it says that there was one, and no more.
        guard words.count == 2, let attempts = Int(words[0]) else {
            return AttemptRecord(attempts: 1, wasWriteAheadLog: false)
        }
        return AttemptRecord(attempts: attempts, wasWriteAheadLog: words[1] == "wal")
    }

    func write(_ paths: DatabasePaths) throws {
        try FileSystem.writeAtomically("\(attempts) \(wasWriteAheadLog ? "wal" : "delete")\n", to: paths.attempt)
        try FileSystem.syncFolder(of: paths.database)
    }

    static func remove(_ paths: DatabasePaths) throws {
        try FileSystem.removeIfPresent(paths.attempt)
    }
}

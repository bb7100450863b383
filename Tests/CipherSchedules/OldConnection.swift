import CipherTestSupport

/// A connection that answers lines of SQL, in this process or another one.
final class OldConnection {
    private enum Form {
        case here(SQLLines)
        case elsewhere(TestProgram.Running)
    }

    private let form: Form
    /// The rows whose commit was acknowledged.
    private(set) var acknowledged: [String] = []
    private var begun = false

    init(_ place: Schedule.Place, _ path: String, keyByte: UInt8?) throws {
        switch place {
        case .here: form = .here(try SQLLines(path, keyByte: keyByte))
        case .elsewhere: form = .elsewhere(try Self.start(path, keyByte))
        }
    }

    private static func start(_ path: String, _ keyByte: UInt8?) throws -> TestProgram.Running {
        let running = try TestProgram.built("CipherLockHolder").start(
            ["sql", path] + (keyByte.map { ["\($0)"] } ?? []))
        guard try running.line() == "ready" else { throw Failure(text: "CipherLockHolder does not start") }
        return running
    }

    @discardableResult
    func ask(_ line: String) throws -> Bool {
        switch form {
        case .here(let lines): lines.answer(line).hasPrefix("ok")
        case .elsewhere(let running): try running.ask(line).hasPrefix("ok")
        }
    }

    /// Begins what the schedule says; refused statements have no effect.
    func begin(_ schedule: Schedule) throws {
        for line in schedule.use.lines(schedule.mode) where try ask(line) && line.hasSuffix("('begun')") {
            begun = true
        }
    }

    /// Writes a row.
    func insert(_ row: String) throws {
        if try ask("INSERT INTO t VALUES ('\(row)')") { acknowledged.append(row) }
    }

    /// Ends the transaction, reads, writes and checkpoints.
    func goOn() throws {
        if try ask("COMMIT"), begun { acknowledged.append("begun") }
        begun = false
        try ask("SELECT count(*) FROM t")
        try insert("old")
        try ask("PRAGMA wal_checkpoint(PASSIVE)")
        try ask("SELECT count(*) FROM t")
    }

    func kill() throws {
        guard case .elsewhere(let running) = form else { return }
        running.kill()
        _ = try running.wait()
    }

    func close() throws {
        switch form {
        case .here(let lines): lines.close()
        case .elsewhere(let running): _ = try running.wait()
        }
    }
}

/// Why a schedule could not be run.
struct Failure: Error, CustomStringConvertible {
    let text: String
    var description: String { text }
}

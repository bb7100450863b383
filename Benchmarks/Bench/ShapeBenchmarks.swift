import Foundation

/// The upgrade of files with extreme shapes: its memory use, and its time compared with `sqlcipher_export`.
struct ShapeBenchmarks {
    let run: UpgradeRun

    /// A kind of file.
    struct Shape {
        let name: String
        /// The size of the largest row, in megabytes.
        var largestRow = 0.0
        /// The SQL that creates the file.
        let script: String
    }

    private static func counting(to count: Int) -> String {
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))"
    }

    static let shapes: [Shape] = [
        Shape(
            name: "10,000 tables of 3 rows",
            script: (1...10_000).map {
                "CREATE TABLE t\($0)(id INTEGER PRIMARY KEY, a TEXT); "
                    + "INSERT INTO t\($0)(a) VALUES ('one'), ('two'), ('three');\n"
            }.joined()),
        Shape(
            name: "a table of 100 columns",
            script: "CREATE TABLE t(\((1...100).map { "c\($0)" }.joined(separator: ", ")));\n"
                + "\(counting(to: 50_000)) INSERT INTO t SELECT "
                + (1...100).map { $0 % 2 == 0 ? "i * \($0)" : "'text ' || i" }.joined(separator: ", ") + " FROM n;\n"),
        Shape(
            name: "a row of 500 MB", largestRow: 500,
            script: "CREATE TABLE t(id INTEGER PRIMARY KEY, a BLOB); INSERT INTO t(a) VALUES (randomblob(500000000));\n"
        ),
        Shape(
            name: "2,000 small indexes",
            script: (1...400).map { table in
                "CREATE TABLE t\(table)(a, b, c, d, e);\n"
                    + ["a", "b", "c", "d", "e"].map { "CREATE INDEX i\(table)\($0) ON t\(table)(\($0));\n" }.joined()
                    + "\(counting(to: 50)) INSERT INTO t\(table) SELECT i, i * 7 % 11, 'x' || i, -i, i / 3 FROM n;\n"
            }.joined()),
        Shape(
            name: "an expression index of 100 MB",
            script: "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT);\n"
                + "\(counting(to: 900_000)) INSERT INTO t SELECT i, hex(randomblob(50)) FROM n;\n"
                + "CREATE INDEX i ON t(lower(a));\n"),
    ]

    /// Runs each only once, because `sqlcipher_export` takes minutes for some of them.
    func measure() throws -> [Measurement] {
        try Self.shapes.flatMap { shape in
            try write(shape)
            let facts = try run.encrypt()
            return [
                Measurement(
                    name: "encrypt \(shape.name), proven", baseline: "sqlcipher_export", ours: [facts.seconds],
                    theirs: [try run.export()], goal: 1),
                .size("peak memory, \(shape.name)", facts.peakMegabytes, atMost: 64 + shape.largestRow),
            ]
        }
    }

    private func write(_ shape: Shape) throws {
        run.removeLegacy()
        let script = run.folder.appending(path: "shape.sql")
        defer { try? FileManager.default.removeItem(at: script) }
        try Data("PRAGMA synchronous = OFF; BEGIN;\n\(shape.script)COMMIT;\n".utf8).write(to: script)
        _ = try ChildProcess.run(run.sqlcipher, [run.legacy], input: script.path(percentEncoded: false))
    }
}

/// A known fault of some SQLite versions that the content of an untrusted file can reach.
///
/// Faults are listed that damage memory or crash the process, and only of parts that SQLCipher's builds contain. Source:
/// SQLite, "Vulnerabilities" and the release history.
package struct EngineFault: Sendable, Equatable, Encodable {
    /// The identifier, such as `CVE-2025-29087`.
    package let id: String
    /// What the file contains to reach the fault.
    package let cause: String
    /// The first SQLite version without the fault, such as `3.49.1`.
    package let fixedIn: String
    /// What prevents the file from reaching the fault; `nil` if nothing does.
    package let fence: String?
    /// What must be avoided with untrusted files, as long as the fault is not fenced.
    package let advice: String?

    /// The versions that have the fault, as numbers such as 3046001.
    private let versions: Range<Int>

    private enum CodingKeys: String, CodingKey { case id, cause, fixedIn, fence, advice }

    private init(
        _ id: String, _ cause: String, since: Int = 0, before: Int, fence: String? = nil, advice: String? = nil
    ) {
        self.id = id
        self.cause = cause
        versions = since..<before
        let patch = before % 1_000
        fixedIn = "\(before / 1_000_000).\(before / 1_000 % 1_000)" + (patch == 0 ? "" : ".\(patch)")
        self.fence = fence
        self.advice = advice
    }

    package static func all(in version: Int) -> [Self] { all.filter { $0.versions.contains(version) } }

    private static let avoidView = "do not query views of untrusted files"
    private static let avoidModule = "do not query or migrate full-text and R-tree tables of untrusted files"

    private static let avoidFTS5 = "do not process untrusted files that contain FTS5 tables"

    private static let all: [Self] = [
        Self(
            "CVE-2026-11824", "an FTS5 table whose index was forged", since: 3_009_000, before: 3_053_002,
            advice: avoidFTS5),
        Self(
            "CVE-2025-29087", "an expression that calls concat_ws with a long separator", since: 3_044_000,
            before: 3_049_001, fence: "calls with long arguments are refused"),
        Self(
            "CVE-2025-6965", "a view with more aggregates than a table can have columns", before: 3_050_002,
            advice: avoidView),
        Self(
            "CVE-2025-7709", "an FTS5 table whose index has too many deleted rows", since: 3_043_000,
            before: 3_050_003, advice: avoidFTS5),
        Self(
            "CVE-2022-35737", "an expression that formats a text of a gigabyte", before: 3_039_002,
            fence: "values are not longer than the file"),
        Self("CVE-2020-15358", "a view that combines sorted queries", before: 3_032_003, advice: avoidView),
        Self(
            "CVE-2020-13434", "an expression that calls printf with a huge width or precision", before: 3_032_001,
            fence: "such calls are refused"),
        Self("CVE-2020-13630", "a view that calls snippet on an FTS3 table", before: 3_032_000, advice: avoidView),
        Self(
            "CVE-2019-16168", "statistics in sqlite_stat1 that make SQLite divide by zero", before: 3_030_000,
            advice: "do not process untrusted files"),
        Self(
            "CVE-2019-8457", "an expression that calls rtreenode", before: 3_028_000,
            fence: "calls of the function are refused"),
        Self(
            "CVE-2018-20346", "an FTS3 or FTS4 table whose index was forged", before: 3_025_003, advice: avoidModule),
        Self(
            "CVE-2018-8740", "a table whose definition in the schema is CREATE TABLE AS", before: 3_023_000,
            advice: "do not process untrusted files"),
        Self("CVE-2017-10989", "an R-tree table whose nodes were forged", before: 3_020_000, advice: avoidModule),
    ]
}

public import CipherSQLite
internal import Foundation

extension Collation {
    /// The collations that GRDB registers on each connection, under its names: `swiftCompare`,
    /// `swiftCaseInsensitiveCompare`, `swiftLocalizedCaseInsensitiveCompare`, `swiftLocalizedCompare` and
    /// `swiftLocalizedStandardCompare`.
    ///
    /// They compare as GRDB's do: by Swift's string order, and by the comparisons of the process's Foundation.
    /// Foundation's order differs between Linux and Apple platforms, and the localized collations follow the process's
    /// locale. An index that was written under another order is rebuilt by the encryption upgrade, and by `REINDEX`.
    ///
    /// Source: GRDB 7.8, `DatabaseCollation`.
    public static let grdb: [Collation] = [
        strings("swiftCompare") { $0 < $1 ? .orderedAscending : $0 == $1 ? .orderedSame : .orderedDescending },
        strings("swiftCaseInsensitiveCompare") { $0.caseInsensitiveCompare($1) },
        strings("swiftLocalizedCaseInsensitiveCompare") { $0.localizedCaseInsensitiveCompare($1) },
        strings("swiftLocalizedCompare") { $0.localizedCompare($1) },
        strings("swiftLocalizedStandardCompare") { $0.localizedStandardCompare($1) },
    ]

    private static func strings(
        _ name: String, _ compare: @escaping @Sendable (String, String) -> ComparisonResult
    ) -> Collation {
        Collation(name: name) { left, right in
            compare(String(decoding: left, as: UTF8.self), String(decoding: right, as: UTF8.self)).rawValue
        }
    }
}

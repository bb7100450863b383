public import CipherSQLite
internal import Foundation

extension SQLFunction {
    /// The functions that GRDB registers on each connection, under its names: `swiftCapitalizedString`,
    /// `swiftLowercaseString`, `swiftUppercaseString`, and the same names with `Localized` after `swift`.
    ///
    /// They convert text and UTF-8 blobs and return NULL for everything else, as GRDB's do. The localized ones follow
    /// the process's locale.
    ///
    /// Source: GRDB 7.8, `DatabaseFunction`.
    public static let grdb: [SQLFunction] = [
        strings("swiftCapitalizedString") { $0.capitalized },
        strings("swiftLowercaseString") { $0.lowercased() },
        strings("swiftUppercaseString") { $0.uppercased() },
        strings("swiftLocalizedCapitalizedString") { $0.localizedCapitalized },
        strings("swiftLocalizedLowercaseString") { $0.localizedLowercase },
        strings("swiftLocalizedUppercaseString") { $0.localizedUppercase },
    ]

    private static func strings(_ name: String, _ change: @escaping @Sendable (String) -> String) -> SQLFunction {
        SQLFunction(name, argumentCount: 1) { arguments in
            switch arguments.first {
            case .text(let text): .text(change(text))
            case .blob(let bytes): String(bytes: bytes, encoding: .utf8).map { .text(change($0)) } ?? .null
            default: .null
            }
        }
    }
}

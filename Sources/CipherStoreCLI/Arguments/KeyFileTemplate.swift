package import CipherKeyProviders
package import CipherSQLite

/// A key file for each database: `{name}` stands for the name of the database without its ending, `{folder}` for the name
/// of its folder.
package struct KeyFileTemplate: KeyTextSource, InputFiles {
    private let template: String

    private static var placeholder: Regex<(Substring, Substring)> {
        /\{(name|folder)\}/.matchingSemantics(.unicodeScalar)
    }

    /// A template; `nil` for the path of one key file.
    package init?(_ path: String) {
        guard path.contains(Self.placeholder) else { return nil }
        template = path
    }

    /// What stands in braces in a path and is no placeholder, such as `{tenant}`; `nil` where there is nothing of the kind.
    package static func unknownPlaceholder(in path: String) -> String? {
        path.matches(of: /\{[^{}\/]*\}/.matchingSemantics(.unicodeScalar)).map { String($0.output) }
            .first { !["{name}", "{folder}"].contains($0) }
    }

    package func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try file(for: database).key(for: purpose, database: database)
    }

    package func plannedKey(database: String) throws -> CipherKey? {
        try file(for: database).plannedKey(database: database)
    }

    package func keyText(database: String) throws -> SecretBytes {
        try file(for: database).keyText(database: database)
    }

    private func file(for database: String) -> FileKeyProvider { KeyOptions.keyFile(path(for: database)) }

    package func inputFiles(for database: String) -> [String] { [path(for: database)] }

    /// The key file of a database.
    package func path(for database: String) -> String {
        // By byte: a name may begin with a combining mark, which would make one character of itself and what is before.
        let parts = database.utf8.split(separator: UInt8(ascii: "/"))
        let file = parts.last ?? "".utf8[...]
        let ending = file.lastIndex(of: UInt8(ascii: ".")) ?? file.endIndex
        let name = String(Substring(ending == file.startIndex ? file : file[..<ending]))
        let folder = String(Substring(parts.dropLast().last ?? "".utf8[...]))
        // In one pass, so that a name cannot hold a placeholder of its own.
        return template.replacing(Self.placeholder) { $0.output.1 == "name" ? name : folder }
    }
}

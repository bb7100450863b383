package import CipherKeyProviders
package import CipherSQLite

/// The path of a key file for each database: `{name}` stands for the database's name without its extension, `{folder}`
/// for the name of its folder.
package struct KeyFileTemplate: KeyTextSource, InputFiles {
    private let template: String
    private let file: @Sendable (String) -> FileKeyProvider

    private static var placeholder: Regex<(Substring, Substring)> {
        /\{(name|folder)\}/.matchingSemantics(.unicodeScalar)
    }

    /// Creates a template; `nil` if the path has no placeholder and names a single key file.
    ///
    /// - Parameter file: Returns the provider of the key file at a path.
    package init?(
        _ path: String, file: @escaping @Sendable (String) -> FileKeyProvider = { FileKeyProvider(path: $0) }
    ) {
        guard path.contains(Self.placeholder) else { return nil }
        template = path
        self.file = file
    }

    /// Returns the first text in braces in a path that is not a placeholder, such as `{tenant}`; `nil` if there is
    /// none.
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

    private func file(for database: String) -> FileKeyProvider { file(path(for: database)) }

    package func inputFiles(for database: String) -> [String] { [path(for: database)] }

    /// Returns the path of a database's key file.
    package func path(for database: String) -> String {
        // Split by byte: a name may begin with a combining mark, which would form one character with the preceding one.
        let parts = database.utf8.split(separator: UInt8(ascii: "/"))
        let file = parts.last ?? "".utf8[...]
        let ending = file.lastIndex(of: UInt8(ascii: ".")) ?? file.endIndex
        let name = String(Substring(ending == file.startIndex ? file : file[..<ending]))
        let folder = String(Substring(parts.dropLast().last ?? "".utf8[...]))
        // In one pass, so that a placeholder inside a name is not replaced.
        return template.replacing(Self.placeholder) { $0.output.1 == "name" ? name : folder }
    }
}

import CipherSQLite
import CipherStore

/// A key file for each database: `{name}` stands for the name of the database without its ending, `{folder}` for the name
/// of its folder.
struct KeyFileTemplate: KeyProvider {
    private let template: String

    /// A template; `nil` for the path of one key file.
    init?(_ path: String) {
        guard path.contains("{name}") || path.contains("{folder}") else { return nil }
        template = path
    }

    func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try FileKeyProvider(path: path(for: database)).key(for: purpose, database: database)
    }

    /// The key file of a database.
    func path(for database: String) -> String {
        let parts = database.split(separator: "/")
        let file = parts.last.map(String.init) ?? ""
        let ending = file.lastIndex(of: ".") ?? file.endIndex
        let name = ending == file.startIndex ? file : String(file[..<ending])
        let folder = parts.dropLast().last.map(String.init) ?? ""
        // In one pass, so that a name cannot hold a placeholder of its own.
        return template.replacing(/\{(name|folder)\}/) { $0.output.1 == "name" ? name : folder }
    }
}

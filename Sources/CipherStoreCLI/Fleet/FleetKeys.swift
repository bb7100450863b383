internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSystemFiles

/// The key files of a run on many databases.
enum FleetKeys {
    /// Refuses a key file that the run would process, overwrite or delete, before the first database is changed: a
    /// database that was encrypted with it could never be opened again.
    ///
    /// - Throws: ``StoreError`` with the code `keyUnavailable` or `nameTaken`.
    static func check(_ providers: [any InputFiles], of files: FleetFiles) throws {
        var databases: Set<FileIdentity> = []
        var keys: [FileIdentity: String] = [:]
        while let found = files.next() {
            guard case .database = found.kind else { continue }
            if let identity = found.identity { databases.insert(identity) }
            for provider in providers {
                try DatabasePaths(found).checkInputs(of: provider)
                for key in provider.inputFiles(for: found.path) {
                    guard let status = try FileSystem.status(key) else { continue }
                    keys[status.identity] = key
                }
            }
        }
        guard let path = keys.first(where: { databases.contains($0.key) })?.value else { return }
        throw StoreError(
            .keyUnavailable, path: path, "the key file is one of the files that this run would process",
            advice: "pass the path of the file that contains the key", changed: .nothing)
    }
}

internal import CipherErrors
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSystemFiles

/// A backup of a database that is not open in this process; other processes may have it open.
package struct FileBackup {
    private let paths: DatabasePaths
    private let provider: any KeyProvider
    private let formats: [CipherSettings]
    private let target: String
    private let backupProvider: (any KeyProvider)?
    private let options: ConversionOptions

    /// - Parameters:
    ///   - provider: Provides the key of the database. It is called only if the database is encrypted.
    ///   - formats: The cipher settings that the database may have, in the order in which they are tried.
    ///   - target: The name of the backup.
    ///   - backupProvider: Provides the key of the backup; `nil` to use the key and the format of the database.
    package init(
        of paths: DatabasePaths, provider: any KeyProvider, formats: [CipherSettings], to target: String,
        backupProvider: (any KeyProvider)?, options: ConversionOptions
    ) {
        self.paths = paths
        self.provider = options.waiting(for: provider)
        self.formats = formats
        self.target = target
        self.backupProvider = backupProvider
        self.options = options
    }

    /// Makes the backup.
    ///
    /// The database and the files beside it stay as they are.
    ///
    /// - Throws: ``StoreError``. In that case nothing exists under the target's name.
    package func run() throws -> EncryptionReport {
        try paths.checkInputs(of: provider)
        if let backupProvider { try paths.checkInputs(of: backupProvider) }
        // A read-only connection stays open until the end. Otherwise another connection could be the last to close,
        // which would merge the log into the file.
        return try StoreError.typing(paths.database) {
            let losesCommits = try LostCommits.exist(paths)
            var report = try DatabaseReader(options.inspector(paths)).readOpened(provider: provider, formats: formats) {
                [paths, options] _, fileKey in
                var report = try DatabaseBackup(
                    of: paths.database, fileKey, to: target, provider: backupProvider, options: options
                ).run {
                    try LockedWriter(
                        paths.database, fileKey, extensions: options.extensions, busyTimeout: options.busyTimeout)
                }
                if let links = try? FileSystem.status(paths.database)?.links, links > 1 {
                    report.warnings.append(
                        "the database has \(links == 2 ? "1 other hard link" : "\(links - 1) other hard links"): if a "
                            + "log or journal is named after another link, the backup does not contain the changes in "
                            + "that file")
                }
                return report
            }
            if losesCommits { report.warnings.append("\(LostCommits.finding): the backup lacks them") }
            return report
        }
    }
}

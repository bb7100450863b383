/// What an earlier run that died left behind.
///
/// Beside a plaintext file the copy is unfinished or unproven; beside an encrypted one there can be none, for the rename
/// took it. Either way nothing in the leftovers is missing from the database.
enum Leftovers {
    /// Removes them.
    static func sweep(_ paths: DatabasePaths) throws {
        for path in paths.leftovers {
            do {
                try FileSystem.removeIfPresent(path)
            } catch {
                guard (try? FileSystem.status(path, followLinks: false))?.isDirectory == true else { throw error }
                throw StoreError(
                    .notAFile, path: path, "a folder has a name that the upgrade needs", advice: "move it away")
            }
        }
    }
}

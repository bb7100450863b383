/// A type that reads input files of a run; the run must not remove any of them.
package protocol InputFiles {
    /// Returns the paths of the files, which need not exist.
    ///
    /// - Parameter database: The database for which the run uses the files.
    func inputFiles(for database: String) -> [String]
}

extension FileKeyProvider: InputFiles {
    package func inputFiles(for database: String) -> [String] { [path] }
}

extension KeyRotation: InputFiles {
    package func inputFiles(for database: String) -> [String] {
        [old, new].flatMap { ($0 as? any InputFiles)?.inputFiles(for: database) ?? [] }
    }
}

extension TimeLimitedKeyProvider: InputFiles {
    package func inputFiles(for database: String) -> [String] {
        (provider as? any InputFiles)?.inputFiles(for: database) ?? []
    }
}

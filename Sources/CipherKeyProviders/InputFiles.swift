/// What reads files that a run was given: none of them may be one that the run removes.
package protocol InputFiles {
    /// The files, as paths that may lead nowhere.
    ///
    /// - Parameter database: The database that they are for.
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

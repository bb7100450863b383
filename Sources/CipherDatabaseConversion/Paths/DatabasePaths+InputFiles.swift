internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSystemFiles

extension DatabasePaths {
    /// The names of the files that SQLite, the upgrade or the removal of an account overwrites or removes.
    private var removable: [String] {
        [wal, sharedMemory, journal, attempt, FileName.sibling(backupName(1), of: database)]
    }

    /// Refuses an input file of the run that has one of these names, whatever path leads to it.
    ///
    /// - Parameter source: An input of the run, such as a key provider.
    /// - Throws: ``StoreError`` with the code `nameTaken`.
    package func checkInputs(of source: Any) throws {
        guard let source = source as? any InputFiles else { return }
        try checkInputs(source.inputFiles(for: database))
    }

    package func checkInputs(_ files: [String]) throws {
        for file in files {
            guard let name = removable.first(where: { SmallFile.isSame($0, file) }) else { continue }
            throw StoreError(
                .nameTaken, path: file,
                "this run needs the file but would overwrite or delete it, because the name "
                    + "\(FileSystem.split(name).name) is reserved for the database's own files",
                advice: "choose another name for the file", changed: .nothing)
        }
    }
}

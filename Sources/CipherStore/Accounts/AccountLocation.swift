internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// The location of the accounts' databases.
enum AccountLocation: Sendable {
    /// Each account has its own folder in this directory.
    case folders(in: URL)
    /// The app's closure returns the file of each account.
    case custom(@Sendable (String) throws -> URL)

    /// Whether each account's files are in a separate folder.
    var separatesAccounts: Bool { if case .folders = self { true } else { false } }

    /// Returns the folder and the file name of an account.
    func place(of account: String, databaseName: () throws -> String) throws -> (folder: String, databaseName: String) {
        let place = try givenPlace(of: account, databaseName)
        let path = place.folder + "/" + place.databaseName
        if try FileSystem.status(path, followLinks: false)?.isSymbolicLink == true {
            try Self.checkReserved(FileSystem.resolve(path))
        }
        return place
    }

    private static func checkReserved(_ path: String) throws {
        let name = FileSystem.split(path).name
        guard let other = DatabasePaths.database(besideWhich: name) else { return }
        throw StoreError(
            .misuse, path: path,
            "the file name of the account's database is reserved for a file of the database \(other)",
            advice: "use a file name that does not end with \(name.dropFirst(other.count))")
    }

    private func givenPlace(
        of account: String, _ databaseName: () throws -> String
    ) throws -> (folder: String, databaseName: String) {
        switch self {
        case .folders(let directory):
            let folder = directory.appending(path: try AccountFolder.name(of: account), directoryHint: .notDirectory)
            return (folder.systemPath, try databaseName())
        case .custom(let location):
            let file = try location(account)
            let path = file.systemPath
            let (folder, name) = FileSystem.split(path.utf8.last == UInt8(ascii: "/") ? String(path.dropLast()) : path)
            guard file.isFileURL, FileName.fault(of: name) == nil else {
                throw StoreError(
                    .misuse, path: file.absoluteString,
                    "the location returned for an account is not the file URL of a database",
                    advice: "return a file URL that ends with the database's file name")
            }
            try Self.checkReserved(folder + "/" + name)
            return (folder, name)
        }
    }

    /// Creates the account's own folder if it does not exist.
    func prepare(_ folder: String) throws {
        guard case .folders = self else { return }
        try FileSystem.createFolder(folder)
    }

    /// Removes the account's own folder if it is empty.
    func tidy(_ folder: String) throws {
        guard case .folders = self else { return }
        try FileSystem.removeFolderIfEmpty(folder)
    }
}

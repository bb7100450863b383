internal import CipherDatabaseConversion
internal import CipherSystemFiles
import CipherTestSupport
import Foundation

/// The files that a killed conversion leaves beside `app.db`.
struct KilledRun {
    let paths: DatabasePaths
    private(set) var record: AttemptRecord
    private let folder: Folder

    /// Leaves a record of a run on the current file.
    init(
        _ folder: TemporaryFolder, _ kind: AttemptRecord.Kind = .conversion, attempts: Int = 1,
        wasWriteAheadLog: Bool = false
    ) throws {
        paths = try DatabasePaths(folder.path("app.db"))
        self.folder = try paths.openFolder()
        record = try AttemptRecord(
            kind, attempts: attempts, wasWriteAheadLog: wasWriteAheadLog,
            original: try self.folder.status("app.db")?.identity.inode)
        try record.write(self.folder, paths)
    }

    var copyName: String { record.copyName(paths) }
    var unfinishedBackupName: String { record.unfinishedBackupName(paths) }

    /// Leaves an unfinished copy.
    @discardableResult
    mutating func leaveCopy(_ text: String = "half a copy") throws -> String {
        let copy = try record.makeCopy(folder, paths)
        try Array(text.utf8).withUnsafeBytes { try copy.append($0) }
        return copyName
    }

    /// Leaves the files as they are between the exchange and the next step.
    ///
    /// The given file, which the record names as the copy, has the database's name, and the original has the copy's
    /// name.
    mutating func exchange(with proven: String) throws {
        record.copy = try folder.status(proven)?.identity.inode
        try record.write(folder, paths)
        try folder.rename(paths.name, to: copyName)
        try folder.rename(proven, to: paths.name)
    }
}

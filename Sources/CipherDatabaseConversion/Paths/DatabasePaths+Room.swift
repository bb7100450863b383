internal import CipherErrors
internal import CipherSystemFiles

extension DatabasePaths {
    /// Checks the free space in the folder, before anything is written.
    ///
    /// - Parameters:
    ///   - bytes: The size of all new files together.
    ///   - largest: The size of the largest new file.
    ///   - subject: The beginning of the error's detail, up to the size.
    /// - Throws: ``StoreError`` with the code `noSpace`.
    func checkRoom(for bytes: Int64, largest: Int64, _ subject: String) throws {
        let room = try FileSystem.freeSpace(folder)
        guard room.disk >= bytes else {
            throw StoreError.noSpace(
                database,
                "\(subject) \(Self.megabytes(bytes)), but only \(Self.megabytes(room.disk, roundsUp: false)) of disk space is free",
                changed: .nothing)
        }
        if let limit = room.fileSizeLimit, limit < largest {
            throw StoreError(
                .noSpace, path: database,
                "\(subject) \(Self.megabytes(largest)), but the file size limit of this process is \(limit) bytes",
                advice: "raise the file size limit (ulimit -f) and try again", changed: .nothing)
        }
    }

    private static func megabytes(_ bytes: Int64, roundsUp: Bool = true) -> String {
        let tenths = (bytes + (roundsUp ? 99_999 : 0)) / 100_000
        return "\(tenths / 10).\(tenths % 10) MB"
    }
}

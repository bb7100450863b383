internal import CipherErrors
internal import CipherPlatform
package import CipherSystemFiles

/// The number of unfinished conversions of a file, the files that they created, and the state to restore.
///
/// The record is written before the first change, and removed when a run ends while its process is alive. If such a run
/// cannot remove its files or restore WAL mode, the record stays, but the run is not counted. The record has four
/// purposes: a launch that a watchdog kills each time is not repeated forever; a database that was in WAL mode returns
/// to WAL mode even if the launch that left that mode was killed; the next run knows which files CipherStore created;
/// and each run reports the files that no run removes. The names of files that are removed have a random part that is
/// recorded before they are created, so no other file is ever mistaken for one of them.
///
/// The record itself is created without any permissions, which are set once it is written. A file that has no
/// permissions and is no larger than a record is the only kind of file that is removed without being listed in a
/// record. Later, the record is overwritten in place; it is shorter than a sector.
///
/// Files are identified by their inodes, and all of them are in the database's folder. The device number is not used,
/// because it may change when the machine restarts.
///
/// A run that fails while its process is alive does not reset the count of earlier runs: if some were killed, the record
/// stays.
package struct AttemptRecord: Equatable {
    /// What the counted runs do.
    ///
    /// Each kind is counted separately: a shadow proof that a watchdog kills must not prevent the upgrade.
    package enum Kind: String {
        /// A conversion of a file that no store has open.
        case conversion
        /// The last step of a conversion of a file that a store has open.
        case lastStep
        case shadow
    }

    var kind: Kind
    var attempts: Int
    var wasWriteAheadLog: Bool
    /// The random part of the names.
    var token: String
    /// The file that is converted; `nil` when a database is created.
    var original: UInt64?
    /// The copy, once it has been created.
    package var copy: UInt64?
    /// The number of the name ``DatabasePaths/damagedName(_:)`` under which a damaged original is kept; `nil` if none
    /// is.
    package var keptAs: Int?
    /// The time of the last change to a damaged original, as text; `nil` if none is kept.
    var keptModified: String?
    /// The progress of the copy, if a later launch can continue it.
    var progress: CopyProgress?
    /// Whether earlier runs left files that may belong to another program; each run reports these files.
    var hasUnrecognized = false
    /// The numbers of the names ``DatabasePaths/damagedName(_:)`` of copies that were made because of a damaged log;
    /// each run reports these copies.
    var keptCopies: [Int] = []

    static let tokenLength = 16
    private static let length = 256
    private static let signature = "cipherstore attempt 1"
    private static let mostAttempts = 1_000_000
    /// More numbers might not fit into the record.
    private static let mostKeptCopies = 8

    package init(
        _ kind: Kind = .conversion, attempts: Int = 0, wasWriteAheadLog: Bool = false, original: UInt64?
    ) throws {
        self.kind = kind
        self.attempts = attempts
        self.wasWriteAheadLog = wasWriteAheadLog
        self.original = original
        token = try Folder.randomName()
    }

    // MARK: Names

    package func copyName(_ paths: DatabasePaths) -> String { paths.copyPrefix + token }
    package func unfinishedBackupName(_ paths: DatabasePaths) -> String { paths.unfinishedBackupPrefix + token }

    /// Returns the database to which a name belongs, if the name has the form of the names of a conversion's files.
    static func database(besideWhich name: String) -> String? {
        guard isToken(name.utf8.suffix(tokenLength)) else { return nil }
        let stem = name.utf8.dropLast(tokenLength)
        let ending = ["-upgrade-", "-plaintext-"].first {
            stem.count > $0.utf8.count && stem.suffix($0.utf8.count).elementsEqual($0.utf8)
        }
        return ending.flatMap { String(stem.dropLast($0.utf8.count)) }
    }

    private static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.count == tokenLength
            && bytes.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    // MARK: Unrecognized files

    /// Removes the inode numbers from a record that is kept only because of a file that is not removed.
    ///
    /// Files that are created later may get these numbers, and the file would then be mistaken for the copy or the
    /// original.
    mutating func disclaim() {
        // No file has this number. Without a number, the record would be that of a database that is being created.
        (original, copy, progress) = (0, 0, nil)
    }

    /// Whether ``disclaim()`` has removed the inode numbers.
    var isDisclaimed: Bool { original == 0 }

    // MARK: Kept copies

    /// Records copies of a database and its damaged log, before they get their names.
    ///
    /// - Parameter number: The number of the name ``DatabasePaths/damagedName(_:)``.
    static func add(
        keptCopy number: Int, _ folder: Folder, _ paths: DatabasePaths, owner: FileSystem.Status
    ) throws {
        var record = try AttemptRecord(original: nil)
        record.disclaim()
        if case .record(let last) = try find(folder, paths) { record = last }
        guard !record.keptCopies.contains(number) else { return }
        record.keptCopies.append(number)
        try record.write(folder, paths, owner: owner)
    }

    // MARK: On disk

    /// The kind of file that has the record's name.
    enum Found: Equatable {
        case nothing
        /// A record whose creation was not finished.
        case unwritten
        case record(AttemptRecord)
        /// A file of another program.
        case stranger
    }

    static func find(_ folder: Folder, _ paths: DatabasePaths) throws -> Found {
        guard let status = try folder.status(paths.attemptName) else { return .nothing }
        guard status.isRegular else { return .stranger }
        if status.mode == 0 { return status.size <= length ? .unwritten : .stranger }
        let descriptor: Int32?
        do {
            descriptor = try folder.openFile(paths.attemptName, forWriting: false)
        } catch let error as StoreError where error.code == .permission {
            // The file belongs to another user, and only that user can read it. It concerns only runs that convert the
            // file.
            return .stranger
        }
        guard let descriptor else { return .nothing }
        defer { close(descriptor) }
        return try read(descriptor, paths)
    }

    private static func read(_ descriptor: Int32, _ paths: DatabasePaths) throws -> Found {
        guard try FileSystem.status(ofDescriptor: descriptor, paths.attempt).isRegular else { return .stranger }
        var bytes = [UInt8](repeating: 0, count: length + 1)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        guard count >= 0 else { throw FileSystem.failure("be read", paths.attempt) }
        return AttemptRecord(bytes[..<count]).map(Found.record) ?? .stranger
    }

    /// Returns the record of a run on the current file; `nil` if there is none.
    static func read(_ paths: DatabasePaths) throws -> AttemptRecord? {
        let folder = try paths.openFolder()
        guard case .record(let record) = try find(folder, paths) else { return nil }
        let present = try folder.status(paths.name)?.identity.inode
        return present == record.original || present == record.copy ? record : nil
    }

    /// Writes the record and syncs it to disk.
    ///
    /// A record that is replaced passes on its information about unrecognized files and kept copies. The name of copies
    /// that no longer exist can be given to another file, so their numbers are not passed on.
    package func write(_ folder: Folder, _ paths: DatabasePaths, owner: FileSystem.Status? = nil) throws {
        var record = self
        switch try Self.find(folder, paths) {
        case .record(let last):
            record.hasUnrecognized = hasUnrecognized || last.hasUnrecognized
            let copies = try last.keptCopies.filter { number in
                let name = paths.damagedName(number)
                return try [name, name + "-wal"].contains { try folder.status($0) != nil }
            }
            record.keptCopies = Set(keptCopies + copies).sorted().suffix(Self.mostKeptCopies)
            try folder.sync()
        case .stranger: throw Self.nameTaken(paths)
        case .unwritten:
            try folder.removeIfPresent(paths.attemptName)
            fallthrough
        case .nothing: return try create(folder, paths, owner)
        }
        guard let descriptor = try folder.openFile(paths.attemptName) else { return try create(folder, paths, owner) }
        defer { close(descriptor) }
        guard case .record = try Self.read(descriptor, paths) else { throw Self.nameTaken(paths) }
        try record.write(descriptor, paths)
    }

    private func create(_ folder: Folder, _ paths: DatabasePaths, _ owner: FileSystem.Status?) throws {
        let descriptor = try folder.create(paths.attemptName, mode: 0)
        defer { close(descriptor) }
        try FileSystem.dropInheritedAccess(descriptor, paths.attempt)
        try write(descriptor, paths)
        // The owner of the database runs the next launch. If the ownership cannot be changed, it stays with this user.
        if let owner { _ = fchown(descriptor, owner.owner, owner.group) }
        guard fchmod(descriptor, 0o600) == 0 else {
            throw FileSystem.failure("be assigned its permissions", paths.attempt)
        }
        guard syncToDisk(descriptor) else { throw FileSystem.failure("be synced", paths.attempt) }
        try folder.sync()
    }

    private func write(_ descriptor: Int32, _ paths: DatabasePaths) throws {
        let bytes = Array(text.utf8)
        let count = pwrite(descriptor, bytes, bytes.count, 0)
        guard count == bytes.count else {
            throw FileSystem.failure("be written", paths.attempt, count < 0 ? errno : ENOSPC)
        }
        guard syncToDisk(descriptor) else { throw FileSystem.failure("be synced", paths.attempt) }
    }

    /// Removes the record, unless the file is another program's.
    ///
    /// The folder is synced first: after a power loss, the record must still list each file that reappears.
    package static func remove(_ paths: DatabasePaths) throws {
        let folder = try paths.openFolder()
        switch try find(folder, paths) {
        case .nothing, .stranger: return
        case .unwritten: break
        case .record: try folder.sync()
        }
        try folder.removeIfPresent(paths.attemptName)
    }

    /// Removes the record after a run; if files were left or earlier runs are still counted, keeps only what concerns
    /// these.
    ///
    /// - Parameters:
    ///   - told: The warnings about the files that were left.
    ///   - killed: The number of earlier runs that did not finish.
    static func end(_ paths: DatabasePaths, leaving told: [String], killed: Int = 0) throws {
        guard !told.isEmpty || killed > 0 else { return try remove(paths) }
        let folder = try paths.openFolder()
        guard case .record(let last) = try find(folder, paths) else { return }
        // Later files may get the inode numbers of files that were removed.
        var record = told.isEmpty ? try AttemptRecord(last.kind, original: last.original) : last
        // The run has ended: it is not counted, and there is no journal mode to restore.
        (record.attempts, record.wasWriteAheadLog) = (killed, false)
        if try !last.hasFileToPutBack(folder, paths) { (record.keptAs, record.keptModified) = (nil, nil) }
        if record != last { try record.write(folder, paths) }
    }

    /// Does not count a run that ended while its process was alive, although its record stays.
    func takeBackCount(_ paths: DatabasePaths) throws {
        let folder = try paths.openFolder()
        guard case .record(var last) = try Self.find(folder, paths), last.token == token, last.attempts == attempts
        else { return }
        last.attempts = max(0, attempts - 1)
        try last.write(folder, paths)
    }

    static func nameTaken(_ paths: DatabasePaths) -> StoreError {
        .inTheWay(
            paths.attempt,
            "the upgrade needs this file name for its record, but another program has created a file with this name")
    }

    /// Creates the copy as an empty file, and records its inode before anything is written to it.
    package mutating func makeCopy(_ folder: Folder, _ paths: DatabasePaths) throws -> NewFile {
        let file = try NewFile(copyName(paths), in: folder)
        copy = file.identity.inode
        try write(folder, paths)
        return file
    }

    /// Records a copy, and then creates its name if the copy was created without one.
    mutating func adopt(_ file: NewFile, _ folder: Folder, _ paths: DatabasePaths) throws {
        copy = file.identity.inode
        try write(folder, paths)
        guard try !file.hasName(copyName(paths)) else { return }
        guard file.appear(as: copyName(paths)) == true else {
            throw FileSystem.failure("be given its final name", paths.database)
        }
    }

    // MARK: As text

    private var text: String {
        func word(_ inode: UInt64?) -> String { inode.map { "\($0)" } ?? "-" }
        // The second line ends with a newline even if nothing follows, so that torn data after that line leaves the
        // line intact.
        let text =
            "\(Self.signature)\n\(attempts) \(wasWriteAheadLog ? "wal" : "delete") \(token) "
            + "\(word(original)) \(word(copy)) \(keptAs.map { "kept-\($0)" } ?? "-")\n"
            + "\(progress?.text ?? "")\n\(kind.rawValue) \(hasUnrecognized ? "unrecognized" : "-") "
            + "\(keptModified ?? "-") \(keptCopies.map(String.init).joined(separator: ","))"
        return text + String(repeating: " ", count: max(0, Self.length - 1 - text.utf8.count)) + "\n"
    }

    /// Returns `nil` if the bytes are not a record.
    private init?(_ bytes: ArraySlice<UInt8>) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard lines[0].elementsEqual(Self.signature.utf8) else { return nil }
        let words = lines.dropFirst().first?.split(separator: UInt8(ascii: " ")) ?? []
        // Older releases write five words.
        guard words.count == 5 || words.count == 6, Self.isToken(words[2]) else {
            // A power loss may have torn the record. No file had been created under its names by then.
            guard let record = try? AttemptRecord(attempts: 1, original: nil) else { return nil }
            self = record
            return
        }
        func number<Number: FixedWidthInteger>(_ index: Int) -> Number? {
            Number(String(decoding: words[index], as: UTF8.self))
        }
        if words.count > 5, words[5].starts(with: "kept-".utf8) {
            keptAs = Int(String(decoding: words[5].dropFirst(5), as: UTF8.self)).flatMap { $0 > 0 ? $0 : nil }
        }
        func line(_ index: Int) -> String {
            guard lines.indices.contains(index) else { return "" }
            // Only printable ASCII, which is valid UTF-8.
            return String(decoding: lines[index].prefix { (32..<127).contains($0) }, as: UTF8.self)
        }
        progress = CopyProgress(text: line(2))
        let last = line(3).split(separator: " ").map(String.init)
        kind = last.first.flatMap(Kind.init) ?? .conversion
        hasUnrecognized = last.dropFirst().first == "unrecognized"
        keptModified = last.dropFirst(2).first.flatMap { $0 == "-" ? nil : $0 }
        keptCopies = last.dropFirst(3).first?.split(separator: ",").compactMap { Int($0) } ?? []
        attempts = max(0, min(number(0) ?? 1, Self.mostAttempts))
        wasWriteAheadLog = words[1].elementsEqual("wal".utf8)
        token = String(decoding: words[2], as: UTF8.self)
        original = number(3)
        copy = number(4)
    }
}

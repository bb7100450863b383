internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

/// The files of a run, one after another: those that a search finds or a list names, except the files of other shards
/// and those that an earlier report lists as done.
// Unchecked, but thread-safe: mutable state is read and written only under `lock`.
final class FleetFiles: @unchecked Sendable {
    /// The folder that paths are relative to, without symbolic links.
    let root: String
    private let lock = Lock()
    /// Exactly one of `search` and `list` is set.
    private var search: DatabaseSearch?
    private let list: NameList?
    private let resumed: ResumedFiles
    private var resumedCount = 0
    private var besides: [DatabaseSearch.Found] = []
    private var failed: (any Error)?

    private init(_ root: String, _ search: DatabaseSearch?, _ list: NameList?, _ resumed: ResumedFiles) {
        (self.root, self.search, self.list, self.resumed) = (root, search, list, resumed)
    }

    /// Begins a search.
    ///
    /// - Throws: ``StoreError`` if there is no such folder.
    static func search(
        in folder: String, _ names: DatabaseSearch.Names, _ shard: Shard, _ resumed: ResumedFiles
    ) throws -> FleetFiles {
        let root = try root(of: folder)
        let search = try DatabaseSearch(in: folder, names, begins: (shard.index, shard.count)) { path in
            shard.owns(relative(path, to: root))
        }
        return FleetFiles(root, search, nil, resumed)
    }

    /// Reads the names from a list.
    ///
    /// - Throws: ``StoreError`` if there is no such folder, or if the list cannot be read.
    static func list(
        _ list: String, in folder: String, _ shard: Shard, _ resumed: ResumedFiles, _ cancellation: UpgradeCancellation
    ) throws -> FleetFiles {
        let names = try NameList(list, in: folder, shard, cancellation)
        return FleetFiles(names.root, nil, names, resumed)
    }

    /// Returns the folder that the paths of a fleet are relative to; if `folder` is a file, the file's folder.
    static func root(of folder: String) throws -> String {
        let path = try FileSystem.resolve(folder)
        return try FileSystem.status(path)?.isRegular == true ? FileSystem.split(path).folder : path
    }

    /// Returns a path as it is written in a report.
    func relative(_ path: String) -> String { Self.relative(path, to: root) }

    private static func relative(_ path: String, to root: String) -> String {
        let prefix = root == "/" ? "/" : root + "/"
        guard path.utf8.starts(with: prefix.utf8) else { return path }
        return String(decoding: path.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
    }

    /// Returns the next file; `nil` if there are no more, or if the list cannot be read any further.
    func next() -> DatabaseSearch.Found? {
        lock.withLock {
            while let found = nextOfSource() {
                switch found.kind {
                case .beside: besides.append(found)
                case .database where isDone(found): resumedCount += 1
                default: return found
                }
            }
            return nil
        }
    }

    private func nextOfSource() -> DatabaseSearch.Found? {
        guard failed == nil else { return nil }
        guard let list else { return search?.next() }
        do {
            return try list.next()
        } catch {
            failed = error
            return nil
        }
    }

    /// Returns whether an earlier report lists the file as done, and no WAL or journal beside it can have changed it.
    private func isDone(_ found: DatabaseSearch.Found) -> Bool {
        guard let modified = found.modified,
            resumed.contains(relative(found.path), .init(size: found.size, modified: modified))
        else { return false }
        return ["-wal", "-journal"].allSatisfy { (try? FileSystem.size(found.path + $0) ?? 0) == 0 }
    }

    /// The number of files that were left out because they are done.
    var resumedFiles: Int { lock.withLock { resumedCount } }

    /// The databases that have the name of a file beside another database; complete after all files were returned.
    var beside: [DatabaseSearch.Found] { lock.withLock { besides } }

    /// The error with which reading the list failed.
    var failure: (any Error)? { lock.withLock { failed } }

    /// Whether the remaining files can be counted without waiting for a program that writes the list.
    var endsByItself: Bool { list == nil }

    /// Whether the files can be found a second time.
    var isRepeatable: Bool { list?.isRegularFile ?? true }
}

/// The names in a list that belong to a shard.
final class NameList {
    private var lines: LineReader
    private var list: DatabaseList
    private let separator: UInt8
    private let shard: Shard
    private let cancellation: UpgradeCancellation
    /// The number of names without a character since the last other one.
    private var emptyNames = 0
    /// A length in bytes that is greater than that of any path that the system accepts.
    private static let longestName = 1 << 16

    var root: String { list.root }
    var isRegularFile: Bool { lines.isRegularFile }

    init(_ path: String, in folder: String, _ shard: Shard, _ cancellation: UpgradeCancellation) throws {
        list = try DatabaseList(in: folder)
        lines = try LineReader(path)
        self.shard = shard
        self.cancellation = cancellation
        separator = try lines.begins(with: 0, within: Self.longestName) ? 0 : UInt8(ascii: "\n")
    }

    func next() throws -> DatabaseSearch.Found? {
        while let bytes = try nextName() {
            let name = SystemPath.text(bytes)
            guard let path = list.path(of: name) else {
                guard shard.owns(name) else { continue }
                return DatabaseSearch.Found(refused: name)
            }
            guard shard.owns(String(decoding: path.utf8.dropFirst(prefixLength), as: UTF8.self)) else { continue }
            return list.found(at: path)
        }
        return nil
    }

    /// Returns the next name that is not empty; `nil` at the end, or if the run is canceled meanwhile.
    private func nextName() throws -> ArraySlice<UInt8>? {
        while let bytes = try lines.next(
            separator: separator, longest: Self.longestName, unless: { [cancellation] in cancellation.isCancelled })
        {
            guard bytes.isEmpty else {
                emptyNames = 0
                return bytes
            }
            emptyNames += 1
            guard emptyNames <= Self.longestName else {
                throw lines.isOther("it contains \(Self.longestName) empty names in a row")
            }
        }
        return nil
    }

    private var prefixLength: Int { root == "/" ? 1 : root.utf8.count + 1 }
}

internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

/// The files of a run, one after the other: what a search finds or a list names, but for other shards' files and those that
/// are done by an earlier report.
// Unchecked, and safe between threads: what changes is read and written only under `lock`.
final class FleetFiles: @unchecked Sendable {
    /// The folder that paths are relative to, without symbolic links.
    let root: String
    private let lock = Lock()
    /// One of the two is there.
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
    /// - Throws: ``StoreError`` where there is no such folder.
    static func search(
        in folder: String, _ names: DatabaseSearch.Names, _ shard: Shard, _ resumed: ResumedFiles
    ) throws -> FleetFiles {
        let root = try root(of: folder)
        let search = try DatabaseSearch(in: folder, names, begins: (shard.index, shard.count)) { path in
            shard.owns(relative(path, to: root))
        }
        return FleetFiles(root, search, nil, resumed)
    }

    /// Takes the names of a list.
    ///
    /// - Throws: ``StoreError`` where there is no such folder, or where the list cannot be read.
    static func list(
        _ list: String, in folder: String, _ shard: Shard, _ resumed: ResumedFiles
    ) throws -> FleetFiles {
        let names = try NameList(list, in: folder, shard)
        return FleetFiles(names.root, nil, names, resumed)
    }

    /// The folder that paths of a fleet are relative to: that of the file, where one is taken for a folder.
    static func root(of folder: String) throws -> String {
        let path = try FileSystem.resolve(folder)
        return try FileSystem.status(path)?.isRegular == true ? FileSystem.split(path).folder : path
    }

    /// A path as it stands in a report.
    func relative(_ path: String) -> String { Self.relative(path, to: root) }

    private static func relative(_ path: String, to root: String) -> String {
        let prefix = root == "/" ? "/" : root + "/"
        guard path.utf8.starts(with: prefix.utf8) else { return path }
        return String(decoding: path.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
    }

    /// The next file; `nil` once there are no more, or where the list cannot be read on.
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

    /// Whether an earlier report tells all there is to know: what SQLite keeps beside the file may change it.
    private func isDone(_ found: DatabaseSearch.Found) -> Bool {
        guard let modified = found.modified,
            resumed.contains(relative(found.path), .init(size: found.size, modified: modified))
        else { return false }
        return ["-wal", "-journal"].allSatisfy { (try? FileSystem.size(found.path + $0) ?? 0) == 0 }
    }

    /// How many files were left out.
    var resumedFiles: Int { lock.withLock { resumedCount } }

    /// The databases under names of files beside others, once all files were taken.
    var beside: [DatabaseSearch.Found] { lock.withLock { besides } }

    /// Why the list could not be read to its end.
    var failure: (any Error)? { lock.withLock { failed } }

    /// Whether what was not taken can be counted without waiting for a program that writes the list.
    var endsByItself: Bool { list == nil }
}

/// The names of a list that are a shard's.
final class NameList {
    private var lines: LineReader
    private var list: DatabaseList
    private let separator: UInt8
    private let shard: Shard
    /// Longer than any path that the system takes.
    private static let longestName = 1 << 16

    var root: String { list.root }

    init(_ path: String, in folder: String, _ shard: Shard) throws {
        list = try DatabaseList(in: folder)
        lines = try LineReader(path)
        self.shard = shard
        separator = try lines.begins(with: 0, within: Self.longestName) ? 0 : UInt8(ascii: "\n")
    }

    func next() throws -> DatabaseSearch.Found? {
        while let bytes = try lines.next(separator: separator, longest: Self.longestName) {
            guard !bytes.isEmpty else { continue }
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

    private var prefixLength: Int { root == "/" ? 1 : root.utf8.count + 1 }
}

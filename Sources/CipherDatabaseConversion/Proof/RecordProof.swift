internal import CipherErrors
internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Compares the original and its copy by the records in their b-trees, without SQL.
///
/// Every page of the copy is authenticated and decrypted with a key that was derived independently of the builder's.
/// The records of each table and the entries of each index are compared as bytes, in order. SQLCipher, with its own
/// derivation, then reads a part of the same pages (``RecordSamples``). Where bytes differ, the comparison is left to
/// SQL.
// Unchecked but safe across threads: mutable state is accessed only under `lock`.
final class RecordProof: @unchecked Sendable {
    private let original: ProofConnection
    private let copyFile: NewFile
    private let copyKey: CipherKey
    private let trees: [RecordTree]
    /// The indexes, views and triggers of the original.
    private let indexes: [SchemaEntry]

    private let lock = Lock()
    private var units: [RecordWorker.Unit]
    private var nextUnit = 0
    private var unitsInWork = 0
    private var failure: (any Error)?
    private let claims = PageSet()
    private var isEveryPageClaimedOnce = true
    private let originalClaims = PageSet()
    private var isEveryOriginalPageClaimedOnce = true

    /// A table of the original with its indexes, as found through SQL.
    struct Table {
        let walk: TableWalk
        let root: Int64
        /// The layout; `nil` if the records do not suffice.
        let layout: RecordLayout?
        let indexes: [IndexComparison]
    }

    /// Pairs the b-trees of both files.
    ///
    /// Returns `nil` if the files cannot be read in this way; SQL then compares them.
    ///
    /// The copy must have SQLCipher 4's default format, and the original must be plaintext and at rest. `source` holds
    /// the original in a transaction, and without a log no other connection can write to it meanwhile.
    ///
    /// - Throws: ``StoreError`` with the code `proofFailed` if the copy is damaged; ``DatabaseError``, ``KeyError``.
    init?(_ tables: [Table], original: ProofConnection, copy: ProofConnection, _ source: Connection) throws {
        guard original.isAtRestAndPlaintext, let file = copy.copy, let key = copy.key, key.form == .rawWithSalt,
            CopyPages.canOpen(copy.settings), source.isInTransaction,
            try source.value(String.self, "PRAGMA journal_mode") != "wal"
        else { return nil }
        self.original = original
        copyFile = file
        copyKey = key
        guard let originalPages = try Self.pages(of: original),
            try source.value(Int64.self, "PRAGMA page_count") == Int64(originalPages.pageCount)
        else { return nil }
        let originalClaims = self.originalClaims
        guard let originals = try? SchemaEntry.all(in: originalPages, claims: originalClaims, damage: { throw $0 })
        else { return nil }
        let claims = self.claims
        let copies = try StoreError.aboutPages(original.path) { opened in
            let pages = try CopyPages(of: file.content, key: key)
            opened = pages
            return try SchemaEntry.all(in: pages, claims: claims) { throw $0 }
        }
        guard originals.map(\.rowid) == copies.map(\.rowid) else { return nil }
        // The content of a tree is identified by its root, which two entries of a damaged schema may share.
        let standing = originals.map(\.rootPage).filter { $0 != 0 }
        guard Set(standing).count == standing.count else { return nil }
        let roots = zip(originals, copies).map { (original: $0.rootPage, copy: $1.rootPage) }
        var contents: [UInt32: RecordTree.Content] = [:]
        var undecided: Set<UInt32> = []
        for table in tables {
            let root = UInt32(clamping: table.root)
            guard let layout = table.layout else {
                undecided.insert(root)
                continue
            }
            contents[root] = .rows(table.walk, layout)
            for index in table.indexes { contents[UInt32(clamping: index.root)] = .entries(index) }
        }
        indexes = originals.filter { !$0.isTable }
        trees = roots.filter { $0.copy != 0 }.map { root in
            let tree = RecordTree(contents[root.original] ?? .other, original: root.original, copy: root.copy)
            // The tree's pages are read nevertheless.
            if undecided.contains(root.original) { tree.leaveToSQL() }
            return tree
        }
        units = trees.map { .tree($0) }
    }

    private static func pages(of original: ProofConnection) throws -> FilePages<ReadBytes>? {
        let file = try DatabaseFile(path: original.path)
        return try FilePages(ReadBytes(size: file.size()) { try file.fill($1, at: $0) })
    }

    /// Does one worker's share of the work until all work is done.
    ///
    /// - Parameter progress: Called repeatedly with the number of bytes since the last call. It may throw to stop the
    ///   comparison.
    /// - Throws: ``StoreError`` with the code `proofFailed`. Every worker throws the same error.
    func work(_ progress: @escaping (Int64) throws -> Void) throws {
        do {
            guard let pages = try Self.pages(of: original) else { throw CancellationError() }
            var worker = RecordWorker(
                pages, try CopyPages(of: copyFile.content, key: copyKey), path: original.path, progress: progress)
            while let unit = try next(progress) { finish(try worker.run(unit)) }
            lock.withLock {
                if !claims.formUnion(worker.claims) { isEveryPageClaimedOnce = false }
                if !originalClaims.formUnion(worker.originalClaims) { isEveryOriginalPageClaimedOnce = false }
            }
        } catch {
            lock.withLock {
                if failure == nil { failure = error }
                lock.wakeAll()
            }
            throw error
        }
    }

    private func next(_ progress: (Int64) throws -> Void) throws -> RecordWorker.Unit? {
        while true {
            let found = try lock.withLock { () throws -> (unit: RecordWorker.Unit?, isEnd: Bool) in
                if let failure { throw failure }
                if nextUnit < units.count {
                    nextUnit += 1
                    unitsInWork += 1
                    return (units[nextUnit - 1], false)
                }
                if unitsInWork == 0 { return (nil, true) }
                // The wait has a limit because a cancellation of the upgrade does not wake this thread.
                _ = lock.wait(until: .now.advanced(by: .milliseconds(100)))
                return (nil, false)
            }
            if let unit = found.unit { return unit }
            if found.isEnd { return nil }
            try progress(0)
        }
    }

    private func finish(_ more: [RecordWorker.Unit]) {
        lock.withLock {
            units += more
            unitsInWork -= 1
            lock.wakeAll()
        }
    }

    /// Lets SQLCipher read a part of the pages, and passes the results to the tables and indexes.
    ///
    /// All workers must have finished.
    ///
    /// - Throws: ``StoreError`` with the code `proofFailed`.
    func settle(_ pair: ConnectionPair, _ progress: @escaping (Int64) throws -> Void) throws {
        for tree in trees where tree.isUndecided {
            if try RecordSamples(tree).areEqual(pair, progress) { tree.settle() } else { tree.leaveToSQL() }
        }
        try checkClaims(pair)
    }

    /// Returns whether each page of the original is known to have exactly one use, each b-tree page to fill its cell
    /// content area, and no index to lead to rows of a table.
    ///
    /// All workers must have finished. Every tree that was compared has been read completely, so this reads only the
    /// free list.
    func accountsForOriginal() throws -> Bool {
        guard isEveryOriginalPageClaimedOnce, trees.allSatisfy(\.isUndecided),
            trees.allSatisfy({ originalClaims.formUnion($0.originalPages) }),
            let pages = try Self.pages(of: original),
            try !indexes.contains(where: { try $0.isIndexWithRows(in: pages) })
        else { return false }
        let header = try FileHeader(DatabaseFile(path: original.path))
        let lockPage = PageGeometry.lockPage(pages.geometry.pageSize)
        guard lockPage > pages.pageCount || originalClaims.claim(lockPage, for: .locks) else { return false }
        if header.hasPointerMap { PointerMap(pages.geometry).claimPages(of: pages.pageCount, originalClaims) }
        do {
            _ = try FreeList(in: pages, first: header.firstFreePage, claims: originalClaims) { throw $0 }
        } catch is DamagedPage {
            return false
        }
        return originalClaims.isFilled && originalClaims.count == Int(pages.pageCount)
    }

    /// Proves that each page of the copy is in one b-tree only.
    private func checkClaims(_ pair: ConnectionPair) throws {
        let pages = try CopyPages(of: copyFile.content, key: copyKey)
        guard isEveryPageClaimedOnce else {
            throw StoreError.proof(original.path, "a page of the copy is part of two b-trees")
        }
        // Trees left to SQL were not read completely. The engine checks free pages and the pages of a pointer map.
        guard trees.allSatisfy(\.isUndecided), try pair.copy.value(Int.self, "PRAGMA freelist_count") == 0,
            try pair.copy.value(Int.self, "PRAGMA auto_vacuum") == 0
        else { return }
        let lockPages = PageGeometry.lockPage(pages.geometry.pageSize) <= pages.pageCount ? 1 : 0
        let unclaimed = Int(pages.pageCount) - lockPages - claims.count
        guard unclaimed == 0 else {
            throw StoreError.proof(
                original.path,
                "\(unclaimed) \(unclaimed == 1 ? "page of the copy is" : "pages of the copy are") not part of any "
                    + "b-tree")
        }
    }
}

extension StoreError {
    /// Runs `body`, and converts a damaged page of the copy into an error that describes the damage.
    ///
    /// - Parameter body: A closure that receives a variable, in which it sets the pages that it reads.
    fileprivate static func aboutPages<Result>(
        _ path: String, _ body: (inout CopyPages?) throws -> Result
    ) throws -> Result {
        var pages: CopyPages?
        do {
            return try body(&pages)
        } catch let damage as DamagedPage {
            throw StoreError.page(path, damage, forged: pages?.forgedPage)
        }
    }

    /// Returns the error for a page of the copy that is damaged or not authentic.
    static func page(_ path: String, _ damage: DamagedPage, forged: UInt32?) -> StoreError {
        if let forged { return .proof(path, "page \(forged) of the copy is not authentic") }
        return .proof(path, "page \(damage.page) of the copy is damaged (\(damage.reason))")
    }
}

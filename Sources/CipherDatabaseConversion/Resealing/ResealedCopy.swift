internal import CipherErrors
internal import CipherPageOpening
internal import CipherPageSealing
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// A copy of an encrypted database with another key, made page by page while other connections write to the database.
///
/// Until the last pass, the copy does not correspond to one commit. A page is considered copied as long as its mark in
/// the database is the one that it had when it was compared, no matter how or by which process the page has been
/// written since. The next pass finds everything that a pass missed. The last pass reads a database at rest, to which
/// no connection can write.
///
/// Until then, the copy has no name, so that a process that is killed leaves nothing.
// Not `Sendable`: used by one thread.
final class ResealedCopy: CopyMadeAhead {
    /// The file; `nil` once it has been handed over.
    private var file: NewFile?
    /// The path that errors contain.
    private let path: String
    private let source: FileKey
    private let keys: UpgradeKeys
    private let proof: PagesProof
    private let window: PageWindow
    private let scratch: UnsafeMutableRawBufferPointer

    /// The results for the pages that had changed since the previous pass.
    struct Pass {
        /// The number of pages that are now equal in the copy.
        var copied = 0
        /// The number of pages that could not be opened with the key, because they were being written or are damaged.
        var unreadable = 0
        /// The first page that differs in the copy.
        var differing: UInt32?

        var changed: Int { copied + unreadable }
    }

    /// Returns whether a database of this format can be copied in this way.
    static func canBeMade(of settings: CipherSettings) -> Bool { FileLayer.canSeal(settings) }

    /// - Parameters:
    ///   - file: An empty file without a name.
    ///   - source: The key that has opened the database.
    ///   - keys: The keys of the copy, which has the same format.
    /// - Returns: `nil` if pages of the format cannot be copied.
    init?(_ file: NewFile, source: FileKey, _ keys: UpgradeKeys) {
        guard Self.canBeMade(of: source.settings), let window = PageWindow(source.settings),
            let proof = PagesProof(source.settings)
        else { return nil }
        self.file = file
        path = file.path
        self.source = source
        self.keys = keys
        self.proof = proof
        self.window = window
        scratch = .allocate(byteCount: PageSealer.pageSize, alignment: 16)
    }

    deinit { scratch.deallocate() }

    /// The record of the copy on disk; `nil` because the copy has no name.
    var record: AttemptRecord? { nil }

    /// Hands over the file, because SQLite must not open it while it is open here.
    func takeFile() throws -> NewFile {
        defer { file = nil }
        return try present()
    }

    /// Makes the copy durable.
    func sync() throws { try present().sync() }

    private func present() throws -> NewFile {
        guard let file else {
            throw DatabaseError(extendedCode: DatabaseError.inputOutput, message: "the copy no longer exists")
        }
        return file
    }

    // MARK: A pass

    /// Copies the pages that have changed since the previous pass, and compares them.
    ///
    /// - Parameters:
    ///   - database: The file, to which other connections may write.
    ///   - advance: Called with the number of bytes of the file that were examined. It may throw to stop the pass.
    /// - Throws: ``DatabaseError`` if a file cannot be read or written; ``KeyError``.
    func update(from database: DatabaseFile, _ advance: (Int64) throws -> Void) throws -> Pass {
        var pass = Pass()
        let size = try database.size()
        let pageCount = UInt32(clamping: size / Int64(PageSealer.pageSize))
        // A partial page at the end is being written.
        if size % Int64(PageSealer.pageSize) != 0 { pass.unreadable += 1 }
        let workers = try Workers(self, keys, pageCount)
        proof.resize(to: Int(pageCount))
        var first: UInt32 = 1
        while first <= pageCount {
            let pages = first..<min(first + UInt32(PageWindow.capacity), pageCount + 1)
            try advance(Int64(first - 1) * Int64(PageSealer.pageSize))
            try update(pages, database, workers, &pass)
            first = pages.upperBound
        }
        try advance(size)
        return pass
    }

    /// The objects of one pass.
    ///
    /// If several pages are authenticated together, they are remembered during the pass.
    private struct Workers {
        let sealing: SealedPages
        let source: EncryptedPages<PageWindow>
        let proof: PagesProof.Readers
        let disk: DescriptorFile

        init(_ copy: ResealedCopy, _ keys: UpgradeKeys, _ pageCount: UInt32) throws {
            let (key, settings) = (copy.source.key, copy.source.settings)
            disk = try copy.present().content
            sealing = try SealedPages(disk, key: keys.building.wait().key, path: copy.path) { body in
                (try? DetachedThread.start("seal", body)) != nil
            }
            try sealing.resize(toPages: pageCount)
            source = try EncryptedPages(copy.window, key: key, settings: settings)
            proof = try copy.proof.readers(CipherKey(text: key.text), keys.proving.wait())
        }
    }

    private func update(
        _ pages: Range<UInt32>, _ database: DatabaseFile, _ workers: Workers, _ pass: inout Pass
    ) throws {
        guard try window.fill(pages, database.fill) else {
            pass.unreadable += pages.count
            return
        }
        let changed = pages.filter { page in
            page != PageGeometry.lockPage(PageSealer.pageSize) && !proof.hasCompared(page, window[page])
        }
        guard !changed.isEmpty else { return }
        for page in changed {
            proof.forget(page)
            if window.isUnwritten(page) {
                try workers.sealing.clear(page)
            } else if let content = try workers.source.lend(page, scratch)?.baseAddress {
                try workers.sealing.write(page, content)
            }
        }
        try workers.sealing.flush()
        let found = try proof.compare(changed, in: pages, workers.proof, original: database.fill) { buffer, offset in
            guard let start = buffer.baseAddress else { return false }
            try workers.disk.fill(start, count: buffer.count, offset: offset)
            return true
        }
        pass.copied += found.equal
        pass.unreadable += found.others
        pass.differing = pass.differing ?? found.differing
    }

    // MARK: Proving

    /// Lets SQLCipher authenticate every compared page, with the key that its provider returned when it was asked
    /// again.
    ///
    /// - Throws: ``StoreError`` with the code `proofFailed`; ``DatabaseError``.
    func authenticate(checking isCancelled: @escaping () -> Bool) throws {
        guard Engine.current.hasCipherIntegrityCheck else { return }
        let connection = try connect(keys.again)
        defer { connection.close() }
        connection.setProgressHandler(every: 1_000) { !isCancelled() }
        try connection.forEachUnauthenticPage { complaint in
            let number = complaint.split(separator: " ").last.flatMap { Int($0) }
            // Pages that have not been written, or have not been compared yet, are not sealed.
            if let number, proof.mayLackSeal(number) { return }
            throw StoreError.proof(path, complaint)
        }
    }

    /// Finishes the copy of a database at rest, and lets SQLCipher read its schema.
    ///
    /// - Parameter database: The file, to which no connection can write.
    /// - Returns: `nil` if the database has pages that its key does not open, or that contain only zeros.
    /// - Throws: ``StoreError`` with the code `proofFailed`; ``DatabaseError``; ``KeyError``.
    func finish(from database: DatabaseFile, _ observer: UpgradeObserver) throws -> FinishedCopy? {
        let pass = try update(from: database) {
            observer.update(bytes: $0)
            try observer.checkCancellation()
        }
        if let page = pass.differing { throw StoreError.proof(path, "page \(page) differs") }
        guard pass.unreadable == 0, let outcome = proof.outcome() else { return nil }
        try observer.begin(.proving)
        let connection = try connect(keys.proving.wait())
        defer { connection.close() }
        try connection.proveReadable()
        // This query reads every page of the schema.
        let tables = try connection.value(
            Int.self, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        try sync()
        return FinishedCopy(
            proven: ProvenFile(try takeFile(), try keys.building.wait(), outcome), tables: tables ?? 0)
    }

    /// Opens the copy without a log: its header may refer to one, but that log is the database's.
    private func connect(_ key: CipherKey) throws -> Connection {
        let file = try present()
        return try ConnectionProfile.proving(file.size()).with(key: key, format: source.settings)
            .open(path, ignoresLog: true, through: file.layer())
    }
}

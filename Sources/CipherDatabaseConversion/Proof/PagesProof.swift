internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Proves that a copy has the pages of an encrypted database, to which other connections may write meanwhile.
///
/// It decrypts the pages of both files again, each with its own key, and shares no key object with the code that copied
/// them. A page counts as compared as long as its mark in the database is the one that it had when it was compared.
// Not `Sendable`: used by one thread.
final class PagesProof {
    private let settings: CipherSettings
    private let windows: (original: PageWindow, copied: PageWindow)
    private let scratch: (UnsafeMutableRawBufferPointer, UnsafeMutableRawBufferPointer)
    /// The mark of each page of the database when it was compared with the copy's page; `nil` for a page not yet
    /// compared.
    private var compared: [PageMark?] = []

    /// The result once every page of a database at rest was compared.
    struct Outcome: ~Copyable {
        fileprivate init() {}
    }

    /// - Parameter settings: The cipher settings of both files.
    /// - Returns: `nil` for a page size that SQLite does not support.
    init?(_ settings: CipherSettings) {
        guard let original = PageWindow(settings), let copied = PageWindow(settings) else { return nil }
        self.settings = settings
        windows = (original, copied)
        scratch = (
            .allocate(byteCount: settings.pageSize, alignment: 16),
            .allocate(byteCount: settings.pageSize, alignment: 16)
        )
    }

    deinit {
        scratch.0.deallocate()
        scratch.1.deallocate()
    }

    // MARK: What was compared

    /// Sets the number of pages of the database.
    func resize(to count: Int) {
        if count < compared.count { compared.removeLast(compared.count - count) }
        compared += Array(repeating: nil, count: count - compared.count)
    }

    /// Returns whether this version of a page was compared.
    func hasCompared(_ page: UInt32, _ mark: PageMark) -> Bool { compared[Int(page) - 1] == mark }

    /// Has the page compared again, because it is about to be copied.
    func forget(_ page: UInt32) { compared[Int(page) - 1] = nil }

    /// Returns whether a page of the copy is not known to be sealed, because it was never written or not yet compared.
    func mayLackSeal(_ page: Int) -> Bool { page >= 1 && page <= compared.count && !isSealed(page) }

    private func isSealed(_ page: Int) -> Bool { compared[page - 1].map { $0 != .unwritten } ?? false }

    /// Returns the result for a database at rest; `nil` if a page was not compared, or contains only zeros.
    ///
    /// A page of zeros may be one that was never written, or one that the disk has lost.
    func outcome() -> Outcome? {
        let lockPage = Int(PageGeometry.lockPage(settings.pageSize))
        guard compared.indices.allSatisfy({ isSealed($0 + 1) || $0 + 1 == lockPage }) else { return nil }
        return Outcome()
    }

    // MARK: A pass

    /// The readers of one pass.
    ///
    /// If several pages are authenticated together, they are remembered during the pass.
    struct Readers {
        fileprivate let original: EncryptedPages<PageWindow>
        fileprivate let copied: EncryptedPages<PageWindow>
    }

    /// - Parameters:
    ///   - key: The key of the database, from its text.
    ///   - newKey: The key of the copy.
    func readers(_ key: CipherKey, _ newKey: CipherKey) throws -> Readers {
        Readers(
            original: try EncryptedPages(windows.original, key: key, settings: settings),
            copied: try EncryptedPages(windows.copied, key: newKey, settings: settings, checksSalt: true))
    }

    /// The result of a comparison.
    struct Comparison {
        /// The number of pages that are equal.
        var equal = 0
        /// The number of other pages: they were being written, are damaged, or differ.
        var others = 0
        /// The first page that differs.
        var differing: UInt32?
    }

    /// Compares pages.
    ///
    /// - Parameters:
    ///   - changed: The pages.
    ///   - pages: Consecutive pages that include all of them.
    ///   - original: Fills a buffer from an offset of the database on.
    ///   - copy: The same for the copy.
    func compare(
        _ changed: [UInt32], in pages: Range<UInt32>, _ readers: Readers,
        original: (UnsafeMutableRawBufferPointer, Int64) throws -> Bool,
        copy: (UnsafeMutableRawBufferPointer, Int64) throws -> Bool
    ) throws -> Comparison {
        var result = Comparison()
        let isThere = try windows.original.fill(pages, original)
        let isCopied = try windows.copied.fill(pages, copy)
        for page in changed {
            guard isThere, isCopied,
                let original = try lend(page, windows.original, readers.original, scratch.0)
            else {
                result.others += 1
                continue
            }
            guard let copied = try lend(page, windows.copied, readers.copied, scratch.1), original.equals(copied)
            else {
                result.differing = result.differing ?? page
                result.others += 1
                continue
            }
            compared[Int(page) - 1] = windows.original[page]
            result.equal += 1
        }
        return result
    }

    /// Returns the content of a page; `nil` if it is not authentic.
    private func lend(
        _ page: UInt32, _ window: PageWindow, _ opened: EncryptedPages<PageWindow>,
        _ scratch: UnsafeMutableRawBufferPointer
    ) throws -> UnsafeRawBufferPointer? {
        guard !window.isUnwritten(page) else {
            scratch.initializeMemory(as: UInt8.self, repeating: 0)
            return UnsafeRawBufferPointer(scratch)
        }
        return try opened.lend(page, scratch)
    }
}

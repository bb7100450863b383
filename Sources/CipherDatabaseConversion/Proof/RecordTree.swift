internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// One b-tree in both files, and the results of comparing its records.
// Unchecked but safe across threads: mutable state is accessed only under `lock`.
final class RecordTree: @unchecked Sendable {
    enum Content: Sendable {
        case rows(TableWalk, RecordLayout)
        case entries(IndexComparison)
        /// A tree of which only the copy's pages are read. The engine compares its content.
        case other
    }

    /// The samples that SQLCipher also reads.
    struct Samples: Sendable {
        /// The rowids of rows of which every value is compared.
        var rows: [Int64] = []
        /// The rowids of long rows, of which only the leaf is read.
        var leaves: [Int64] = []
        /// Entries of an index, or rows of a WITHOUT ROWID table, as the SQL of their values.
        var entries: [[SQL]] = []

        mutating func add(_ other: Samples) {
            rows += other.rows
            leaves += other.leaves
            entries += other.entries
        }
    }

    /// The results for a part of the tree.
    struct Findings: Sendable {
        var tally: Tally
        var forbiddenNulls: Set<Int> = []
        var entries = Fingerprints()
        var isOrdered = true
        var samples = Samples()

        init(indexes: Int = 0) {
            tally = Tally(indexes: indexes)
        }
    }

    let content: Content
    /// The root pages in the original and the copy.
    let original: UInt32
    let copy: UInt32

    /// The pages of the original that the parts of a divided tree have reached.
    let originalPages = PageSet()

    private let lock = Lock()
    private var isEqual = true
    private var findings: Findings

    init(_ content: Content, original: UInt32, copy: UInt32) {
        self.content = content
        self.original = original
        self.copy = copy
        findings =
            if case .rows(_, let layout) = content { Findings(indexes: layout.indexes.count) } else { Findings() }
    }

    /// Whether neither a difference nor anything that the records cannot decide has been found yet.
    var isUndecided: Bool { lock.withLock { isEqual } }

    /// Leaves the tree to the comparison with SQL.
    func leaveToSQL() { lock.withLock { isEqual = false } }

    /// Adds the results for one part.
    ///
    /// - Parameter pages: The pages of the original that the part shares with other parts or that belong to it alone.
    func add(_ part: Findings, reaching pages: PageSet? = nil) {
        lock.withLock {
            if let pages { originalPages.formUnion(pages) }
            findings.tally.add(part.tally)
            findings.forbiddenNulls.formUnion(part.forbiddenNulls)
            findings.entries.add(part.entries)
            findings.isOrdered = findings.isOrdered && part.isOrdered
            findings.samples.add(part.samples)
        }
    }

    var samples: Samples { lock.withLock { findings.samples } }

    /// Passes the results to the table or the index, once all parts have been compared.
    func settle() {
        let findings = lock.withLock { self.findings }
        switch content {
        case .rows(let walk, _):
            walk.settle(
                findings.tally, forbiddenNulls: findings.forbiddenNulls, isOrdered: findings.isOrdered)
        case .entries(let index): index.settle(findings.entries, isOrdered: findings.isOrdered)
        case .other: break
        }
    }
}

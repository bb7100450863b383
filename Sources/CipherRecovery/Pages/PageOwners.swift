internal import CipherSQLiteFormat

/// The use found for each page of a damaged database, in one byte per page.
final class PageOwners: PageClaims {
    enum Owner: UInt8 {
        case nobody, tree, overflow, free, system
    }

    private var owners: [UInt8]
    /// Whether something else leads to a page that already has an owner, so that one of the two is an old version.
    private(set) var areContradicted = false

    init(_ source: some PageSource) {
        owners = [UInt8](repeating: 0, count: Int(source.pageCount) + 1)
        claim(PageGeometry.lockPage(source.geometry.pageSize), .system)
    }

    subscript(page: UInt32) -> Owner {
        Int(page) < owners.count ? Owner(rawValue: owners[Int(page)]) ?? .nobody : .system
    }

    /// Returns whether the page exists and has no owner.
    func isUnclaimed(_ page: UInt32) -> Bool { page > 0 && self[page] == .nobody }

    /// Records the owner of a page that has none.
    ///
    /// - Returns: Whether the page exists and had no owner.
    @discardableResult
    func claim(_ page: UInt32, _ owner: Owner) -> Bool {
        guard isUnclaimed(page) else { return false }
        owners[Int(page)] = owner.rawValue
        return true
    }

    /// Records that something leads to a page; it contradicts the page's owner, unless nothing owns the page.
    func contest(_ page: UInt32) {
        if ![.nobody, .system].contains(self[page]) { areContradicted = true }
    }

    /// Removes the claims on pages, for example if the cell that claimed them turned out to be damaged.
    func release(_ pages: [UInt32]) {
        for page in pages where Int(page) < owners.count { owners[Int(page)] = 0 }
    }

    func claim(_ page: UInt32, for use: PageUse) -> Bool {
        contest(page)
        return switch use {
        case .tree: claim(page, .tree)
        case .overflow: claim(page, .overflow)
        case .freeTrunk, .freeLeaf: claim(page, .free)
        case .pointerMap, .locks: claim(page, .system)
        }
    }
}

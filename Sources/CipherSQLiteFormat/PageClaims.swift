/// The use of a page.
package enum PageUse: Equatable, Sendable {
    /// A page of a b-tree.
    case tree(root: UInt32)
    /// A page that holds the part of a payload that did not fit on a b-tree page.
    case overflow(root: UInt32)
    case freeTrunk
    case freeLeaf
    case pointerMap
    /// The page that contains SQLite's lock bytes.
    case locks

    /// The root of the b-tree that uses the page; `nil` for a page of no b-tree.
    package var root: UInt32? {
        switch self {
        case .tree(let root), .overflow(let root): root
        case .freeTrunk, .freeLeaf, .pointerMap, .locks: nil
        }
    }
}

/// A record of the pages that were reached.
///
/// A page that is reached twice is damage, whether from two pages or from one. Thus every walk ends, whatever the pages
/// contain.
package protocol PageClaims: AnyObject {
    /// Records a page.
    ///
    /// - Returns: Whether the page was not recorded before.
    func claim(_ page: UInt32, for use: PageUse) -> Bool

    /// Records that a b-tree page, which has just been claimed, does not fill its cell content area
    /// (``TreePage/fillsContentArea``).
    func noteUnfilled(_ page: UInt32)
}

extension PageClaims {
    package func noteUnfilled(_ page: UInt32) {}
}

/// A set of pages of which only the used parts take memory: 4 KB for every 32,768 pages.
package final class PageSet: PageClaims {
    private static let wordsInPart = 512
    private var parts: [UInt32: [UInt64]] = [:]
    /// The number of pages in the set.
    package private(set) var count = 0
    /// Whether every b-tree page in the set fills its cell content area.
    package private(set) var isFilled = true

    package init() {}

    package func noteUnfilled(_ page: UInt32) { isFilled = false }

    /// Adds the pages of another set.
    ///
    /// - Returns: Whether the two sets had no page in common.
    @discardableResult package func formUnion(_ other: PageSet) -> Bool {
        var areDisjoint = true
        isFilled = isFilled && other.isFilled
        for (index, part) in other.parts {
            var mine = parts[index, default: [UInt64](repeating: 0, count: Self.wordsInPart)]
            for word in part.indices {
                let new = part[word] & ~mine[word]
                if new != part[word] { areDisjoint = false }
                count += new.nonzeroBitCount
                mine[word] |= new
            }
            parts[index] = mine
        }
        return areDisjoint
    }

    /// Returns the number of pages, up to the last one given, that another set does not have.
    func count(notIn other: PageSet, upTo last: UInt32) -> Int {
        parts.reduce(0) { count, entry in
            let (index, others) = (entry.key, other.parts[entry.key])
            return entry.value.enumerated().reduce(count) { count, entry in
                let first = index << 15 | UInt32(entry.offset) << 6
                guard first <= last else { return count }
                let known: UInt64 = last - first >= 63 ? .max : .max >> (63 - UInt64(last - first))
                return count + (entry.element & known & ~(others?[entry.offset] ?? 0)).nonzeroBitCount
            }
        }
    }

    package func claim(_ page: UInt32, for use: PageUse) -> Bool {
        let (word, bit) = (Int(page >> 6) % Self.wordsInPart, UInt64(1) << UInt64(page & 63))
        let index = page >> 15
        return insert(word, bit, &parts[index, default: [UInt64](repeating: 0, count: Self.wordsInPart)])
    }

    /// Removes a page, if it is in the set.
    func remove(_ page: UInt32) {
        let (word, bit) = (Int(page >> 6) % Self.wordsInPart, UInt64(1) << UInt64(page & 63))
        guard let words = parts[page >> 15]?[word], words & bit != 0 else { return }
        parts[page >> 15]?[word] &= ~bit
        count -= 1
    }

    private func insert(_ word: Int, _ bit: UInt64, _ part: inout [UInt64]) -> Bool {
        guard part[word] & bit == 0 else { return false }
        part[word] |= bit
        count += 1
        return true
    }
}

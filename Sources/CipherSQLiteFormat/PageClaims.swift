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

    /// Returns whether another set has all of these pages.
    package func isSubset(of other: PageSet) -> Bool {
        parts.allSatisfy { index, part in
            guard let others = other.parts[index] else { return part.allSatisfy { $0 == 0 } }
            return zip(part, others).allSatisfy { $0 & ~$1 == 0 }
        }
    }

    package func claim(_ page: UInt32, for use: PageUse) -> Bool {
        let (word, bit) = (Int(page >> 6) % Self.wordsInPart, UInt64(1) << UInt64(page & 63))
        let index = page >> 15
        return insert(word, bit, &parts[index, default: [UInt64](repeating: 0, count: Self.wordsInPart)])
    }

    /// Returns the number of pages in the set up to a page.
    func count(upTo last: UInt32) -> Int {
        parts.reduce(0) { count, entry in
            let (index, part) = entry
            guard index >= last >> 15 else { return count + part.reduce(0) { $0 + $1.nonzeroBitCount } }
            guard index == last >> 15 else { return count }
            let (word, bit) = (Int(last >> 6) % Self.wordsInPart, last & 63)
            return part[..<word].reduce(count) { $0 + $1.nonzeroBitCount }
                + (part[word] & (UInt64.max >> (63 - UInt64(bit)))).nonzeroBitCount
        }
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

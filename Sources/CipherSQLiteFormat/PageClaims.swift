/// What a page is for.
package enum PageUse: Equatable, Sendable {
    /// A page of a b-tree.
    case tree(root: UInt32)
    /// A page that holds what did not fit on one of a b-tree.
    case overflow(root: UInt32)
    case freeTrunk
    case freeLeaf
    case pointerMap
    /// The page of the bytes that SQLite locks.
    case locks
}

/// Who keeps account of the pages that were reached.
///
/// A page that two lead to, or one twice, is damage. So nothing that is walked has an end in doubt, whatever its pages say.
package protocol PageClaims: AnyObject {
    /// Notes a page.
    ///
    /// - Returns: Whether it was not noted before.
    func claim(_ page: UInt32, for use: PageUse) -> Bool
}

/// A set of pages, of which only the parts that are used take memory: 4 KB for 32,768 pages.
package final class PageSet: PageClaims {
    private static let wordsInPart = 512
    private var parts: [UInt32: [UInt64]] = [:]
    /// How many pages there are in it.
    package private(set) var count = 0

    package init() {}

    /// Takes the pages of another set over.
    ///
    /// - Returns: Whether the two had no page in common.
    package func formUnion(_ other: PageSet) -> Bool {
        count += other.count
        for (index, part) in other.parts {
            var mine = parts[index, default: [UInt64](repeating: 0, count: Self.wordsInPart)]
            for word in part.indices {
                guard mine[word] & part[word] == 0 else { return false }
                mine[word] |= part[word]
            }
            parts[index] = mine
        }
        return true
    }

    package func claim(_ page: UInt32, for use: PageUse) -> Bool {
        let (word, bit) = (Int(page >> 6) % Self.wordsInPart, UInt64(1) << UInt64(page & 63))
        let index = page >> 15
        return insert(word, bit, &parts[index, default: [UInt64](repeating: 0, count: Self.wordsInPart)])
    }

    private func insert(_ word: Int, _ bit: UInt64, _ part: inout [UInt64]) -> Bool {
        guard part[word] & bit == 0 else { return false }
        part[word] |= bit
        count += 1
        return true
    }
}

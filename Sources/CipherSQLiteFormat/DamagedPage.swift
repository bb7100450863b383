/// A page whose content violates SQLite's file format.
///
/// It is not evidence of damage to other pages; the reader decides whether to continue.
package struct DamagedPage: Error, Hashable, Sendable {
    /// The number of the page, from 1.
    package let page: UInt32
    package let reason: Reason

    @inlinable package init(_ page: UInt32, _ reason: Reason) {
        self.page = page
        self.reason = reason
    }

    package enum Reason: Sendable {
        /// The source has no such page, or could not read it.
        case missing
        /// The page was reached before, by the same b-tree or list or by another.
        case claimedTwice
        /// The page is not a b-tree page, or it is a page of a table's b-tree in an index's b-tree, or the other way
        /// round.
        case noTreePage
        /// The page is the root of a table's b-tree where the schema seems to need an index's b-tree, or the other way
        /// round.
        case otherKind
        /// The page has more cells than a page can hold, or no cells although it must have some.
        case cellCount
        /// A cell begins or ends outside the cell area.
        case cellBounds
        /// A payload is longer than SQLite's limit, or than its overflow pages can hold.
        case payloadLength
        /// The b-tree has more levels than SQLite allows, or leaves at different levels.
        case depth
        /// The rowids do not ascend, or are outside the bounds that the pages above specify.
        case keyOrder
        /// A record header ends outside the record, or contains a reserved serial type.
        case recordHeader
        /// A record is shorter or longer than its header states.
        case recordLength
        /// A row of the schema table does not describe an object.
        case schemaEntry
        /// A free-list trunk claims more leaves than it can hold.
        case freeList
    }
}

/// A page whose content is not what SQLite's file format says.
///
/// It says nothing of the pages around it: whoever reads decides whether to continue.
package struct DamagedPage: Error, Equatable, Sendable {
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
        /// A page that was reached before, by the same tree or list or by another.
        case claimedTwice
        /// No page of a b-tree, or one of a table's tree in an index's or the other way round.
        case noTreePage
        /// More cells than a page can hold, or none where there must be some.
        case cellCount
        /// A cell that begins or ends outside the place for cells.
        case cellBounds
        /// A payload longer than SQLite's limit, or than what its overflow pages could hold.
        case payloadLength
        /// More levels than a tree of as many pages can have, or leaves at different levels.
        case depth
        /// Rowids that do not ascend, or are not those that the pages above tell of.
        case keyOrder
        /// A record's header that ends outside it, or a serial type that is reserved.
        case recordHeader
        /// A record that is shorter or longer than its header says.
        case recordLength
        /// A row of the schema's table that describes nothing.
        case schemaEntry
        /// A trunk of the free list that claims more leaves than it can hold.
        case freeList
    }
}

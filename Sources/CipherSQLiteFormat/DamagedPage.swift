/// A page whose content violates SQLite's file format.
///
/// It says nothing about other pages; the reader decides whether to continue.
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
        /// Not a b-tree page, or a page of a table's tree in an index's tree or the other way round.
        case noTreePage
        /// More cells than a page can hold, or no cells if there must be some.
        case cellCount
        /// A cell that begins or ends outside the cell area.
        case cellBounds
        /// A payload longer than SQLite's limit, or than what its overflow pages could hold.
        case payloadLength
        /// More levels than SQLite allows, or leaves at different levels.
        case depth
        /// Rowids that do not ascend, or are outside the bounds that the pages above give.
        case keyOrder
        /// A record header that ends outside the record, or a reserved serial type.
        case recordHeader
        /// A record that is shorter or longer than its header says.
        case recordLength
        /// A row of the schema table that does not describe an object.
        case schemaEntry
        /// A free-list trunk that claims more leaves than it can hold.
        case freeList
    }
}

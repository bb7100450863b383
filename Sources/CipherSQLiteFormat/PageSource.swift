/// The pages of a database, which somebody else supplies.
package protocol PageSource {
    var geometry: PageGeometry { get }
    /// How many pages the database has.
    var pageCount: UInt32 { get }

    /// Lends a page: the source's own bytes, or `scratch` filled with them.
    ///
    /// They last as long as the source does and `scratch` is not used for another page.
    ///
    /// - Parameters:
    ///   - page: From 1 to `pageCount`.
    ///   - scratch: Memory for one page.
    /// - Returns: The whole page; `nil` if it is not there, or is not what its writer sealed.
    /// - Throws: What keeps the source from reading.
    func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer?
}

/// The pages of a database file, as they are in it.
package struct FilePages<Bytes: ByteSource>: PageSource {
    package let geometry: PageGeometry
    package let pageCount: UInt32
    @usableFromInline let bytes: Bytes

    package init(_ bytes: Bytes, _ geometry: PageGeometry, pageCount: UInt32) {
        self.bytes = bytes
        self.geometry = geometry
        self.pageCount = pageCount
    }

    /// Takes sizes from the header; `nil` if it has none that SQLite knows.
    package init?(_ bytes: Bytes) throws {
        guard let header = try FileHeader(of: bytes), let geometry = header.geometry else { return nil }
        let whole = bytes.size / Int64(geometry.pageSize)
        self.init(
            bytes, geometry, pageCount: UInt32(clamping: min(whole, header.claimedPages.map(Int64.init) ?? whole)))
    }

    @inlinable package func lend(
        _ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer
    ) throws -> UnsafeRawBufferPointer? {
        guard page >= 1, page <= pageCount else { return nil }
        return try bytes.lend(at: (Int64(page) - 1) * Int64(geometry.pageSize), count: geometry.pageSize, scratch)
    }
}

/// The pages of a database file, some of which are replaced by what is in its log or journal.
package struct VersionedPages<Database: ByteSource, Sidecar: ByteSource>: PageSource {
    package let geometry: PageGeometry
    package let versions: PageVersions
    private let database: Database
    private let sidecar: Sidecar

    package var pageCount: UInt32 { versions.pageCount }

    /// Takes the number of reserved bytes from page 1, wherever it is; `nil` if it has sizes that are not those of the
    /// sidecar or that SQLite does not know.
    package init?(_ database: Database, _ versions: PageVersions, in sidecar: Sidecar) throws {
        let start = try versions.offsets[1].map { try sidecar.read(at: $0, count: FileHeader.length) } ?? nil
        let header = try start.map { FileHeader(bytes: $0, fileSize: database.size) } ?? FileHeader(of: database)
        guard let geometry = header?.geometry, geometry.pageSize == versions.pageSize else { return nil }
        self.init(database, versions, in: sidecar, geometry)
    }

    package init(_ database: Database, _ versions: PageVersions, in sidecar: Sidecar, _ geometry: PageGeometry) {
        self.geometry = geometry
        self.versions = versions
        self.database = database
        self.sidecar = sidecar
    }

    package func lend(
        _ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer
    ) throws -> UnsafeRawBufferPointer? {
        guard page >= 1, page <= pageCount else { return nil }
        if let offset = versions.offsets[page] {
            return try sidecar.lend(at: offset, count: geometry.pageSize, scratch)
        }
        return try database.lend(at: (Int64(page) - 1) * Int64(geometry.pageSize), count: geometry.pageSize, scratch)
    }
}

/// Where a log or a journal has pages that count in place of the database's.
package struct PageVersions: Equatable, Sendable {
    package let pageSize: Int
    /// The size of the database with them, in pages.
    package let pageCount: UInt32
    /// Where in the sidecar each page begins.
    package let offsets: [UInt32: Int64]
}

/// A source of the pages of a database.
package protocol PageSource {
    var geometry: PageGeometry { get }
    /// The number of pages in the database.
    var pageCount: UInt32 { get }
    /// Whether each page that the source lends is authentic, so that SQLite has written it as it is.
    var areAuthenticated: Bool { get }

    /// Lends a page: the source's own bytes, or `scratch` filled with them.
    ///
    /// The bytes are valid as long as the source exists and `scratch` is not used for another page.
    ///
    /// - Parameters:
    ///   - page: The number of the page, from 1 to `pageCount`.
    ///   - scratch: Memory for one page.
    /// - Returns: The whole page; `nil` if it does not exist, or is not authentic.
    /// - Throws: The error that prevents the source from reading.
    func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer?
}

extension PageSource {
    package var areAuthenticated: Bool { false }

    /// Returns the header on page 1, wherever that page is; `nil` if it is not a valid header.
    package func header() throws -> FileHeader? {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: geometry.pageSize, alignment: 16)
        defer { memory.deallocate() }
        guard let page = try lend(1, memory) else { return nil }
        let header = FileHeader(
            bytes: Array(page.prefix(FileHeader.length)), fileSize: Int64(geometry.pageSize) * Int64(pageCount))
        return header.isPlaintext ? header : nil
    }
}

/// The pages of a database file, as stored in it.
package struct FilePages<Bytes: ByteSource>: PageSource {
    package let geometry: PageGeometry
    package let pageCount: UInt32
    @usableFromInline let bytes: Bytes

    package init(_ bytes: Bytes, _ geometry: PageGeometry, pageCount: UInt32) {
        self.bytes = bytes
        self.geometry = geometry
        self.pageCount = pageCount
    }

    /// Creates the pages with the sizes in the header; returns `nil` if SQLite does not support these sizes.
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

/// The pages of a database file, some of which are replaced by pages in its log or journal.
package struct VersionedPages<Database: ByteSource, Sidecar: ByteSource>: PageSource {
    package let geometry: PageGeometry
    package let versions: PageVersions
    private let database: Database
    private let sidecar: Sidecar

    package var pageCount: UInt32 { versions.pageCount }

    /// Creates the pages with the number of reserved bytes in page 1, wherever that page is; returns `nil` if its sizes
    /// differ from those of the sidecar or SQLite does not support them.
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

/// The locations of the pages in a log or a journal that replace those of the database.
package struct PageVersions: Equatable, Sendable {
    package let pageSize: Int
    /// The size of the database with the replaced pages, in pages.
    package let pageCount: UInt32
    /// The offset in the sidecar at which each page begins.
    package let offsets: [UInt32: Int64]

    /// Whether no page of the database file is used.
    package var areAllPages: Bool { offsets.keys.count { $0 <= pageCount } == Int(pageCount) }

    /// Returns the same versions with another size of the database.
    package func with(pageCount: UInt32) -> PageVersions {
        PageVersions(pageSize: pageSize, pageCount: pageCount, offsets: offsets)
    }

    /// Returns the versions of some of the pages, by their numbers and offsets.
    package func filter(_ isIncluded: (UInt32, Int64) throws -> Bool) rethrows -> PageVersions {
        PageVersions(
            pageSize: pageSize, pageCount: pageCount,
            offsets: try offsets.filter { try isIncluded($0.key, $0.value) })
    }

    /// Returns the versions of the pages that the database file has but cannot lend, such as torn ones.
    package func mending(_ file: some PageSource) throws -> PageVersions {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: file.geometry.pageSize, alignment: 16)
        defer { memory.deallocate() }
        return try filter { page, _ in try page <= file.pageCount && file.lend(page, memory) == nil }
    }
}

internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat
import Testing

/// Pages that are authenticated together with the pages that follow.
@Suite struct PageRunTests {
    /// The largest possible number of pages, all with the same bytes.
    private struct EndlessPages: PageSource {
        let geometry: PageGeometry
        var pageCount: UInt32 { .max }

        func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer? {
            scratch.initializeMemory(as: UInt8.self, repeating: UInt8(truncatingIfNeeded: page))
            return UnsafeRawBufferPointer(scratch)
        }
    }

    @Test("The last possible page number can be read, alone and in sequence, and a forged page is reported")
    func last() throws {
        let settings = CipherSettings(compatibility: 4)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: settings.pageSize, alignment: 16)
        defer { memory.deallocate() }
        for order: [UInt32] in [[.max, 5, 6, .max], Array((.max - 20)...(.max)), [.max - 1, .max, 1, 2]] {
            let geometry = try #require(PageGeometry(pageSize: settings.pageSize, reserved: settings.reservedBytes))
            let pages = try EncryptedPages(
                EndlessPages(geometry: geometry), key: .raw(.random(count: 32), salt: .random(count: 16)),
                settings: settings)
            for page in order { #expect(try pages.lend(page, memory) == nil) }
            #expect(pages.forgedPage == order[0])
        }
    }
}

internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Values of records, by their serial types.
@Suite struct RecordReaderTests {
    private func values(_ record: [UInt8]) throws -> [String] {
        try record.withUnsafeBytes { bytes in
            var reader = try RecordReader(bytes, page: 9)
            var values: [String] = []
            while let value = try reader.next() {
                switch value {
                case .null: values.append("null")
                case .integer(let number): values.append("\(number)")
                case .real(let number): values.append("real \(number)")
                case .text(let bytes): values.append("text \(bytes.count)")
                case .blob(let bytes): values.append("blob \(bytes.count)")
                }
            }
            return values
        }
    }

    @Test("Integers, texts and blobs at the limits of each serial type are read exactly")
    func stored() throws {
        let folder = try TemporaryFolder(inMemory: true)
        var numbers: [Int64] = [0, 1, -1, 2, .min, .max]
        for bits in [7, 15, 23, 31, 47] {
            numbers += [-1, 0, 1].map { (1 << Int64(bits)) + $0 } + [-(1 << Int64(bits)), ~(1 << Int64(bits))]
        }
        let sizes = [0, 1, 57, 58, 8_185, 8_186]
        try LegacyFile.write(folder.path("app.db")) { connection in
            try connection.execute("CREATE TABLE t(a, b)")
            for number in numbers {
                try connection.execute("INSERT INTO t VALUES (\(number), \(Double(number) + 0.5))")
            }
            for size in sizes {
                let text = String(repeating: "x", count: size)
                try connection.execute("INSERT INTO t VALUES (\(text), \([UInt8](text.utf8)))")
            }
        }
        let source = try #require(try FilePages(HeldBytes(contentsOf: folder.path("app.db"))))
        var cursor = TreeCursor(source, root: 2)
        for number in numbers {
            let cell = try #require(try cursor.next())
            #expect(try values(Array(cursor.payload(of: cell))) == ["\(number)", "real \(Double(number) + 0.5)"])
        }
        for size in sizes {
            let cell = try #require(try cursor.next())
            #expect(try values(Array(cursor.payload(of: cell))) == ["text \(size)", "blob \(size)"])
        }
        #expect(try cursor.next() == nil)
    }

    @Test("Nine-byte and overlong varints are read, and NaN is NULL")
    func unusual() throws {
        #expect(try values([2, 9]) == ["1"])
        #expect(try values([1]) == [])
        // The header's length takes nine bytes, and all bits of the last one count.
        #expect(try values([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 10, 8]) == ["0"])
        #expect(try values([4, 0x80, 0x80, 9]) == ["1"])
        #expect(try values([2, 7, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]) == ["null"])
        #expect(try values([3, 1, 5, 0xff, 0x80, 0, 0, 0, 0, 0]) == ["-1", "-140737488355328"])
    }

    @Test(
        "A record that does not match its header is damaged",
        arguments: [
            ([], .recordHeader), ([0], .recordHeader), ([3, 0], .recordHeader), ([0x80], .recordHeader),
            ([2, 10], .recordHeader), ([2, 11], .recordHeader), ([2, 0x80], .recordHeader),
            ([2, 0x81, 0], .recordHeader),
            ([2, 1], .recordLength), ([2, 6, 1, 2, 3], .recordLength), ([2, 8, 0], .recordLength),
            ([1, 0], .recordLength), ([2, 14], .recordLength),
            ([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .recordHeader),
            ([10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .recordHeader),
            ([5, 0x8f, 0xff, 0xff, 0x7f], .recordLength),
        ] as [([UInt8], DamagedPage.Reason)])
    func damaged(record: [UInt8], reason: DamagedPage.Reason) {
        #expect(throws: DamagedPage(9, reason)) { try values(record) }
    }
}

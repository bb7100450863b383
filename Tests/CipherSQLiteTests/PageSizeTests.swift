internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

#if !os(iOS) && !os(tvOS) && !os(watchOS)
    /// The page size that SQLite reads from a file must be SQLCipher's, or the file must be refused.
    ///
    /// Each test runs in a separate process: SQLCipher writes beyond the buffer of a page that is smaller than its own.
    struct PageSizeTests {
        private let folder: TemporaryFolder
        private var file: URL { folder.url.appending(path: "app.db") }
        private static let header = [UInt8]("SQLite format 3\0".utf8)

        init() throws {
            folder = try TemporaryFolder()
        }

        private func make(_ format: CipherSettings, journal: String = "delete", _ body: () throws -> Void = {}) throws {
            let connection = try Connection(file, mode: .create, key: TestKeys.rawWithSalt(), format: format)
            try connection.executeScript(
                text: "PRAGMA journal_mode = \(journal); CREATE TABLE t(a); INSERT INTO t VALUES('Ana')")
            try body()
            connection.close()
        }

        /// Every way of opening must report that the format does not match, or that the file is damaged.
        private func expectRefusal(_ format: CipherSettings) throws {
            for mode in [Connection.Mode.readOnly, .readWrite, .create] {
                let error = #expect(throws: DatabaseError.self, "\(format) \(mode)") {
                    try Connection(file, mode: mode, key: TestKeys.rawWithSalt(), format: format)
                }
                #expect(error?.isCorrupt == true, "\(format) \(mode) \(String(describing: error))")
            }
        }

        @Test(
            "A file whose readable header states a page size other than the format's is refused",
            .enabled(if: Engine.current.cipherMajor >= 4))
        func hostileHeader() async {
            await #expect(processExitsWith: .success) {
                for size: [UInt8] in [[2, 0], [4, 0], [16, 0], [128, 0], [0, 1]] {
                    for headerSize in [0, 32] {
                        let tests = try PageSizeTests()
                        let start = Self.header + size + [1, 1, 80, 64, 32, 32]
                        let bytes = start + (start.count..<131_072).map { UInt8(truncatingIfNeeded: $0 &* 7) }
                        try Data(bytes).write(to: tests.file)
                        try tests.expectRefusal(CipherSettings(plaintextHeaderSize: headerSize))
                    }
                }
            }
        }

        @Test(
            "A readable header may state only the number of reserved bytes that the file has",
            .enabled(if: Engine.current.cipherMajor >= 4))
        func reservedBytes() async {
            await #expect(processExitsWith: .success) {
                for format in [
                    CipherSettings(plaintextHeaderSize: 32),
                    CipherSettings(hmacAlgorithm: .sha1, plaintextHeaderSize: 32),
                    CipherSettings(hmacAlgorithm: .sha256, plaintextHeaderSize: 32),
                ] {
                    let tests = try PageSizeTests()
                    try tests.make(format)
                    var bytes = [UInt8](try Data(contentsOf: tests.file))
                    let stated = bytes[20]
                    for reserved in UInt8.min...UInt8.max where reserved != stated {
                        bytes[20] = reserved
                        try Data(bytes).write(to: tests.file)
                        try tests.expectRefusal(format)
                    }
                }
            }
        }

        @Test(
            "A sound file with a readable header is refused in every format but its own",
            .enabled(if: Engine.current.cipherMajor >= 4))
        func otherFormats() async {
            await #expect(processExitsWith: .success) {
                let formats = [
                    CipherSettings(plaintextHeaderSize: 32), CipherSettings(pageSize: 1024, plaintextHeaderSize: 32),
                    CipherSettings(pageSize: 8192, plaintextHeaderSize: 32),
                    CipherSettings(pageSize: 65_536, plaintextHeaderSize: 32),
                    CipherSettings(hmacAlgorithm: .sha1, plaintextHeaderSize: 32), CipherSettings(),
                    CipherSettings(compatibility: 3),
                ]
                for format in formats.dropLast(2) {
                    let tests = try PageSizeTests()
                    try tests.make(format)
                    for other in formats where other != format { try tests.expectRefusal(other) }
                    let connection = try Connection(tests.file, key: TestKeys.rawWithSalt(), format: format)
                    #expect(try connection.values(String.self, "SELECT a FROM t") == ["Ana"])
                    connection.close()
                }
            }
        }

        @Test(
            "A page 1 in the log that states another page size is refused",
            .enabled(if: Engine.current.cipherMajor >= 4))
        func headerInLog() async {
            await #expect(processExitsWith: .success) {
                for size in [512, 1024, 8192] {
                    let (tests, writer) = (try PageSizeTests(), try PageSizeTests())
                    let format = CipherSettings(plaintextHeaderSize: 32)
                    try writer.make(format, journal: "wal") {
                        for suffix in ["", "-wal"] {
                            try FileManager.default.copyItem(
                                at: writer.folder.url.appending(path: "app.db\(suffix)"),
                                to: tests.folder.url.appending(path: "app.db\(suffix)"))
                        }
                    }
                    let log = tests.folder.url.appending(path: "app.db-wal")
                    var bytes = [UInt8](try Data(contentsOf: log))
                    let isChanged = Self.setPageSize(size, inFramesOf: &bytes)
                    try #require(isChanged)
                    try Data(bytes).write(to: log)
                    try tests.expectRefusal(format)
                }
            }
        }

        @Test("A changed header is refused in a format without authentication")
        func unauthenticatedHeader() async {
            await #expect(processExitsWith: .success) {
                let format = CipherSettings(compatibility: 1)
                for key in [try TestKeys.rawWithSalt(), try .random(), try .passphrase("secret")] {
                    let tests = try PageSizeTests()
                    let connection = try Connection(tests.file, mode: .create, key: key, format: format)
                    try connection.execute("CREATE TABLE t(a)")
                    connection.close()
                    let sound = try Connection(tests.file, key: key, format: format)
                    #expect(try sound.value(Int.self, "SELECT count(*) FROM t") == 0)
                    sound.close()
                    var bytes = [UInt8](try Data(contentsOf: tests.file))
                    // The initialization vector of page 1, with which its first block is decrypted: 1024 becomes 512.
                    bytes[format.pageSize - format.reservedBytes] ^= 6
                    try Data(bytes).write(to: tests.file)
                    for mode in [Connection.Mode.readOnly, .readWrite] {
                        let error = #expect(throws: DatabaseError.self) {
                            try Connection(tests.file, mode: mode, key: key, format: format)
                        }
                        #expect(error?.isCorrupt == true)
                    }
                }
            }
        }

        /// Writes another size into each page 1 of a log, and corrects the checksums.
        ///
        /// Source: SQLite, "Database File Format", section 4.
        private static func setPageSize(_ size: Int, inFramesOf log: inout [UInt8]) -> Bool {
            func big32(_ at: Int) -> UInt32 { log[at..<(at + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
            func word(_ at: Int) -> UInt32 {
                let number = big32(at)
                return log[3] & 1 == 1 ? number : number.byteSwapped
            }
            var sums: (UInt32, UInt32) = (big32(24), big32(28))
            let pageSize = Int(big32(8))
            var isChanged = false
            for frame in stride(from: 32, through: log.count - 24 - pageSize, by: 24 + pageSize) {
                if big32(frame) == 1 {
                    (log[frame + 24 + 16], log[frame + 24 + 17]) = (UInt8(size >> 8), UInt8(size & 255))
                    isChanged = true
                }
                let parts = [frame..<(frame + 8), (frame + 24)..<(frame + 24 + pageSize)]
                for position in parts.flatMap({ stride(from: $0.lowerBound, to: $0.upperBound, by: 8) }) {
                    sums.0 = sums.0 &+ word(position) &+ sums.1
                    sums.1 = sums.1 &+ word(position + 4) &+ sums.0
                }
                for (index, sum) in [sums.0, sums.1].enumerated() {
                    for byte in 0..<4 {
                        log[frame + 16 + 4 * index + byte] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * UInt32(byte)))
                    }
                }
            }
            return isChanged
        }
    }
#endif

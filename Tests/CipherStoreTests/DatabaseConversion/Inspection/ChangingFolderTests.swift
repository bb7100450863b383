internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSchemaMigration
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Inspects files that another thread creates, replaces and removes meanwhile.
///
/// Each inspection must return a state that existed at some moment.
struct ChangingFolderTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path("app.db")
    }

    /// Repeats `change` on a separate thread while `body` runs.
    private func changing(_ change: @escaping @Sendable (Int) throws -> Void, while body: () throws -> Void) throws {
        let work = Work()
        Thread.detachNewThread {
            var round = 0
            while work.isWanted {
                do {
                    try change(round)
                } catch {
                    work.failure = error
                    break
                }
                round += 1
            }
            work.ended.signal()
        }
        let outcome = Result { try body() }
        work.isWanted = false
        work.ended.wait()
        try outcome.get()
        if let failure = work.failure { throw failure }
    }

    // Unchecked, but safe: it is used only under `lock`.
    private final class Work: @unchecked Sendable {
        let ended = DispatchSemaphore(value: 0)
        private let lock = NSLock()
        private var wanted = true
        private var error: (any Error)?
        var isWanted: Bool {
            get { lock.withLock { wanted } }
            set { lock.withLock { wanted = newValue } }
        }
        var failure: (any Error)? {
            get { lock.withLock { error } }
            set { lock.withLock { error = newValue } }
        }
    }

    @Test("A log that is removed during an inspection is seen or not seen, and causes no error")
    func sidecar() throws {
        let log = path + "-wal"
        try changing({ _ in
            try Data(count: 32).write(to: URL(filePath: log))
            unlink(log)
        }) {
            for _ in 0..<20_000 {
                if let file = try SidecarFile(log) { #expect(file.size == 32) }
            }
        }
    }

    @Test("A file renamed into place during the lookup is found, and is not mistaken for a dangling link")
    func resolve() throws {
        let (path, new) = (path, folder.path("new"))
        let real = try FileSystem.resolve(path)
        try changing({ _ in
            try Data(count: 1).write(to: URL(filePath: new))
            rename(new, path)
            unlink(path)
        }) {
            for _ in 0..<20_000 {
                let found = try FileSystem.resolve(path)
                #expect(found == real)
            }
        }
    }

    @Test("A link that is being replaced is resolved to one of its targets")
    func resolveLink() throws {
        try folder.write("", to: "one")
        try folder.write("", to: "two")
        let (path, new) = (path, folder.path("new"))
        let targets = try ["one", "two"].map { try FileSystem.resolve(folder.path($0)) }
        symlink("one", path)
        try changing({ round in
            symlink(round.isMultiple(of: 2) ? "two" : "one", new)
            rename(new, path)
        }) {
            for _ in 0..<20_000 {
                let found = try FileSystem.resolve(path)
                #expect(targets.contains(found))
            }
        }
    }

    @Test("A database that is created, replaced and removed is identified as one of its states")
    func surface() throws {
        let files = try [false, true].map { isEncrypted in
            let file = try OpeningFixture.file(version: 23, encryptedWith: isEncrypted ? TestKeys.raw() : nil)
            return try Data(contentsOf: URL(filePath: file.path))
        }
        let (path, new) = (path, folder.path("new"))
        let inspector = try Inspector(path: path)
        var seen: Set<String> = []
        try changing({ round in
            for file in files {
                try file.write(to: URL(filePath: new))
                rename(new, path)
            }
            unlink(path)
        }) { () throws in
            for _ in 0..<3_000 {
                do {
                    let surface = try inspector.surface()
                    seen.insert("\(surface)")
                } catch let error as StoreError where error.code == .busy {
                    // The file changed as often as it was inspected.
                }
            }
        }
        #expect(seen.isSubset(of: ["missing", "plaintext", "opaque(hasPlaintextHeader: false)"]), "\(seen)")
        #expect(!seen.isEmpty)
    }

    @Test(
        "A log that is written, checkpointed and restarted meanwhile is not reported as damage",
        arguments: [false, true])
    func liveLog(isEncrypted: Bool) throws {
        let key: CipherKey? = isEncrypted ? try TestKeys.raw() : nil
        let path = path
        let writer = try Connection(path: path, mode: .create)
        if let key { try writer.setKey(key, settings: CipherSettings()) }
        try writer.execute("PRAGMA journal_mode = WAL")
        try writer.execute("CREATE TABLE t(a)")
        let inspector = Inspector(try DatabasePaths(path))
        var looks = 0
        let box = Box(connection: writer)
        try changing({ round in
            try box.connection.execute("INSERT INTO t VALUES (zeroblob(40000))")
            if round.isMultiple(of: 2) { try box.connection.execute("PRAGMA wal_checkpoint(RESTART)") }
            if round.isMultiple(of: 50) { try box.connection.execute("DELETE FROM t") }
            if round.isMultiple(of: 100) { try box.connection.execute("VACUUM") }
        }) { () throws in
            for _ in 0..<400 {
                do {
                    let count: Int? =
                        if let key {
                            try inspector.readingEncrypted(
                                key: key, settings: CipherSettings(), hasPlaintextHeader: false
                            ) { connection, _ in try connection.value(Int.self, "SELECT count(*) FROM t") } ?? nil
                        } else {
                            try inspector.readingPlaintext { try $0.value(Int.self, "SELECT count(*) FROM t") } ?? nil
                        }
                    #expect(count != nil)
                    _ = try inspector.surface()
                    looks += 1
                } catch let error as StoreError where error.code == .busy {
                    // The writer holds the lock at this moment.
                }
            }
        }
        writer.close()
        #expect(looks > 0)
    }

    @Test("A log that exists only while a connection is open does not lock out readers")
    func comingAndGoingLog() throws {
        let path = path
        try LegacyFile.write(path, script: "PRAGMA journal_mode = WAL; CREATE TABLE t(a)")
        let inspector = Inspector(try DatabasePaths(path))
        var looks = 0
        try changing({ _ in
            let connection = try Connection(path: path, mode: .readWrite, busyTimeout: .milliseconds(60_000))
            defer { connection.close() }
            try connection.execute("INSERT INTO t VALUES (1)")
        }) { () throws in
            for _ in 0..<1_500 {
                do {
                    _ = try inspector.surface()
                    let count = try inspector.readingPlaintext { try $0.value(Int.self, "SELECT count(*) FROM t") }
                    #expect(count != nil)
                    looks += 1
                } catch let error as StoreError where error.code == .busy {
                    // The last connection copies the log into the file as it closes, and holds an exclusive lock.
                }
            }
        }
        #expect(looks > 0)
    }

    // Unchecked, but safe: one thread uses it at a time.
    private struct Box: @unchecked Sendable { let connection: Connection }

    @Test("A file replaced by another program while it is open is reported as busy, not as lacking permission")
    func moved() throws {
        let connection = try Connection(path: path, mode: .create)
        defer { connection.close() }
        try connection.execute("CREATE TABLE t(a)")
        try folder.write("another's", to: "new")
        rename(folder.path("new"), path)
        let error = try #require(throws: DatabaseError.self) { try connection.execute("INSERT INTO t VALUES (1)") }
        #expect(StoreError(error, path: path, during: .use).code == .busy)
        #expect(StoreError(error, path: path, during: .migration("it")).code == .busy)
    }

    @Test("A file removed between an inspection and the opening is reported as missing, not as a disk error")
    func gone() {
        let error = StoreError(
            DatabaseError(extendedCode: 14, message: "", path: path), path: path, during: .use)
        #expect(error.code == .missingFile)
        #expect(FileSystem.canRead(path) && FileSystem.canWrite(path))
    }
}

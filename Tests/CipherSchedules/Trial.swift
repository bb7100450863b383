internal import CipherStore
import CipherTestSupport
import Foundation

/// One schedule with a separate file.
struct Trial {
    let schedule: Schedule
    /// Whether the file belongs to another user, so that the system cannot show who has it open.
    let isUntold: Bool

    struct Result {
        var wasRefused = false
        /// How many rows were acknowledged.
        var acknowledged = 0
        /// What was lost, or happened without a report.
        var losses: [String] = []
    }

    private static let seeds = (1...40).map { "seed \($0)" }

    private var oldKey: UInt8? { schedule.conversion == .rekey || schedule.conversion == .decrypt ? 7 : nil }
    private var newKey: UInt8? {
        switch schedule.conversion {
        case .encrypt, .launch: 7
        case .rekey: 8
        case .decrypt: nil
        }
    }

    func run() throws -> Result {
        var result = Result()
        let file = try make()
        let old = Box()
        if schedule.time == .before { try old.open(schedule, file.path, oldKey) }
        var warnings: [String] = []
        do {
            warnings = try convert(file) { progress in
                guard schedule.time == .meanwhile, progress.stage == .proving else { return }
                try? old.open(schedule, file.path, oldKey)
            }
        } catch let error as StoreError where error.code == .busy {
            result.wasRefused = true
        }
        guard let connection = old.connection else { throw Failure(text: "the old connection was never opened") }
        if result.wasRefused {
            try connection.goOn()
            try connection.close()
            warnings = try convert(file) { _ in }
        } else if warnings.isEmpty {
            result.losses.append("success without a warning, although another connection was open")
        }
        let written = try write(file, beside: result.wasRefused ? nil : connection)
        if !result.wasRefused { try connection.close() }
        let acknowledged = connection.acknowledged + written
        result.acknowledged = acknowledged.count
        result.losses += try lost(Self.seeds + acknowledged, file)
        return result
    }

    private func make() throws -> LegacyFile {
        let file = try LegacyFile { connection in
            if let oldKey { try connection.setKey(TestKeys.raw(oldKey), settings: CipherSettings()) }
            _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(schedule.mode)"))
            try connection.executeScript("CREATE TABLE t(a TEXT); PRAGMA user_version = 23")
            for seed in Self.seeds { try connection.execute("INSERT INTO t VALUES (\(seed))") }
        }
        if isUntold { try FileManager.default.setAttributes([.ownerAccountID: 12], ofItemAtPath: file.path) }
        return file
    }

    private func convert(
        _ file: LegacyFile, _ progress: @escaping (UpgradeProgress) -> Void
    ) throws -> [String] {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        // The progress is reported on this thread.
        nonisolated(unsafe) let told = progress
        options.progress = { told($0) }
        switch schedule.conversion {
        case .encrypt:
            return try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
                .warnings
        case .rekey:
            return try Rekeying(
                at: DatabasePaths(file.path), oldKey: TestKeys.provider(),
                newKey: TestKeys.provider { try TestKeys.raw(8) },
                formats: [CipherSettings()], newSettings: CipherSettings(), options: options
            ).run().warnings
        case .decrypt:
            return try Decryption(
                path: file.path, provider: TestKeys.provider(), formats: [CipherSettings()], options: options
            ).run().warnings
        case .launch:
            return try StoreOpening(
                configuration: Configuration(
                    databaseName: "app.db", version: 26, encryption: Configuration.Encryption(sinceVersion: 24)),
                directory: file.folder.url.path(percentEncoded: false), provider: TestKeys.provider(),
                options: options
            ).run().report.warnings
        }
    }

    /// Makes another process write the new file while the old connection continues.
    ///
    /// Half of the writes are in a transaction that may never end.
    ///
    /// Before it ends, the transaction has removed every row, so that the loss of its journal would show.
    ///
    /// Returns the acknowledged rows.
    private func write(_ file: LegacyFile, beside old: OldConnection?) throws -> [String] {
        let writer = try OldConnection(.elsewhere, file.path, keyByte: newKey)
        try writer.insert("new")
        for line in [
            "PRAGMA cache_size = 1",
            "INSERT INTO t WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 99) "
                + "SELECT hex(zeroblob(1000)) FROM s",
            "BEGIN", "UPDATE t SET a = '~' || a",
        ] {
            guard try writer.ask(line) else { throw Failure(text: "the new file cannot be written: \(line)") }
        }
        if schedule.crash == .first { try writer.kill() }
        try old?.goOn()
        switch schedule.crash {
        case .first: break
        case .last: try writer.kill()
        case .none:
            try writer.ask("UPDATE t SET a = substr(a, 2) WHERE a GLOB '~*'")
            try writer.ask("COMMIT")
            try writer.insert("later")
            try writer.close()
        }
        return writer.acknowledged
    }

    private func lost(_ rows: [String], _ file: LegacyFile) throws -> [String] {
        do {
            return try file.read(key: newKey.map { try TestKeys.raw($0) }) { connection in
                let found = Set(try connection.values(String.self, "SELECT a FROM t"))
                let health = try connection.value(String.self, "PRAGMA integrity_check") ?? "none"
                return rows.filter { !found.contains($0) } + (health == "ok" ? [] : [health])
            }
        } catch let error as DatabaseError {
            return ["the file: \(error)"]
        }
    }

    /// The old connection, which may be opened while the file is converted.
    private final class Box {
        private(set) var connection: OldConnection?

        func open(_ schedule: Schedule, _ path: String, _ keyByte: UInt8?) throws {
            guard connection == nil else { return }
            let opened = try OldConnection(schedule.place, path, keyByte: keyByte)
            connection = opened
            try opened.begin(schedule)
        }
    }
}

import Foundation

/// Upgrades copies of a legacy file with the command-line tool, and with the engine's `sqlcipher_export`.
///
/// `sqlcipher_export` neither verifies its result nor replaces the original.
struct UpgradeRun {
    /// The folder of the built programs.
    let bin: URL
    /// The command-line tool `sqlcipher`.
    let sqlcipher: String
    let folder: URL
    let legacy: String

    /// The results that the upgrade reported, and the resources that it used.
    struct Facts {
        let seconds: Double
        let peakMegabytes: Double
        let megabytes: Double
        let stages: [String: Double]
    }

    private struct Report: Decodable {
        let bytesBefore: Int64
        let stageSeconds: [String: Double]
    }

    private var work: URL { folder.appending(path: "work") }
    private var database: String { work.appending(path: "chat.db").path(percentEncoded: false) }
    private var key: String { folder.appending(path: "key").path(percentEncoded: false) }

    func encrypt() throws -> Facts {
        try copyLegacy()
        try? FileManager.default.removeItem(atPath: key)
        guard
            FileManager.default.createFile(
                atPath: key, contents: Data("secret".utf8), attributes: [.posixPermissions: 0o600])
        else { throw BenchmarkFailure("the key file cannot be made") }
        let run = try ChildProcess.run(program("cipherstore"), ["encrypt", database, "--key-file", key, "--json"])
        let report = try JSONDecoder().decode(Report.self, from: run.output)
        return Facts(
            seconds: run.seconds, peakMegabytes: run.peakMegabytes, megabytes: Double(report.bytesBefore) / 1e6,
            stages: report.stageSeconds)
    }

    func export() throws -> Double { try exportRun().seconds }

    /// Returns the time and memory that `sqlcipher_export` uses.
    func exportRun() throws -> (seconds: Double, peakMegabytes: Double) {
        try copyLegacy()
        let target = work.appending(path: "encrypted.db").path(percentEncoded: false)
        let script = "ATTACH '\(target)' AS e KEY 'secret'; SELECT sqlcipher_export('e'); DETACH e;"
        let run = try ChildProcess.run(sqlcipher, [database, script])
        return (run.seconds, run.peakMegabytes)
    }

    /// Returns the time of a process that reads the header of the legacy file and reports on it.
    func inspect(with tool: String? = nil) throws -> Double {
        try ChildProcess.run(tool ?? program("cipherstore"), ["inspect", legacy]).seconds
    }

    /// Writes the database of the example app, with the given number of messages.
    func writeLegacy(_ messages: Int) throws {
        removeLegacy()
        _ = try ChildProcess.run(program("CipherLegacyChat"), [legacy, String(messages)])
    }

    func removeLegacy() {
        for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: legacy + ending) }
    }

    func program(_ name: String) -> String { bin.appending(path: name).path(percentEncoded: false) }

    /// Returns the path of the copy.
    @discardableResult
    func copyLegacy() throws -> String {
        try? FileManager.default.removeItem(at: work)
        try FileManager.default.createDirectory(at: work, withIntermediateDirectories: true)
        for ending in ["", "-wal"] where FileManager.default.fileExists(atPath: legacy + ending) {
            try FileManager.default.copyItem(atPath: legacy + ending, toPath: database + ending)
        }
        // Otherwise the system would write the copied bytes to the disk during the measurement.
        sync()
        return database
    }
}

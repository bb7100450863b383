import CipherTestSupport
import Foundation

/// One damaged database that is upgraded and judged.
struct FileTrial {
    /// Success with equal rows, or an error with its code.
    let outcome: String
    /// What went wrong; `nil` if nothing did.
    let fault: String?
    /// The output of the upgrade.
    var message = ""

    /// Upgrades the database of a folder, in place.
    ///
    /// - Parameter folder: Contains `app.db` and its sidecars, and nothing else.
    static func run(_ folder: TemporaryFolder) throws -> FileTrial {
        let aside = try copy(of: folder)
        let run = try Child.run(Child.mutator, ["upgrade", folder.path("app.db")])
        let outcome =
            run.output.split(separator: "\n").last { !$0.contains(" ") || $0.contains(": /") }.map(String.init) ?? ""
        switch run.status {
        case 0:
            return FileTrial(outcome: outcome, fault: try faultOfSuccess(folder, aside))
        case 2:
            let code = String(outcome.prefix { $0 != ":" })
            return FileTrial(outcome: code, fault: try faultOfRefusal(folder, aside), message: outcome)
        default:
            return FileTrial(outcome: "status \(run.status)", fault: "status \(run.status): \(run.output.suffix(400))")
        }
    }

    /// Plans for the database of a folder; the plan must end and change nothing.
    ///
    /// - Returns: What went wrong; `nil` if nothing did.
    static func faultOfPlanning(_ folder: TemporaryFolder) throws -> String? {
        let before = try FolderDigest(folder.url)
        let run = try Child.run(Child.mutator, ["plan", folder.path("app.db")])
        guard run.status == 0 || run.status == 2 else {
            return "planning: status \(run.status): \(run.output.suffix(400))"
        }
        return try FolderDigest(folder.url) == before ? nil : "planning changed the files"
    }

    /// Migrates a copy of the database of a folder without encrypting it; the migration must end.
    ///
    /// - Returns: What went wrong; `nil` if nothing did.
    static func faultOfMigrating(_ folder: TemporaryFolder) throws -> String? {
        let trial = try copy(of: folder)
        let run = try Child.run(Child.mutator, ["migrate", trial.path("app.db")])
        guard run.status == 0 || run.status == 2 else {
            return "migrating: status \(run.status): \(run.output.suffix(400))"
        }
        return try (stray(trial) ?? growth(trial, since: folder)).map { "migrating: \($0)" }
    }

    private static func copy(of folder: TemporaryFolder) throws -> TemporaryFolder {
        let copy = try TemporaryFolder()
        for name in try folder.names {
            try FileManager.default.copyItem(atPath: folder.path(name), toPath: copy.path(name))
        }
        return copy
    }

    /// The original, if one of its indexes names missing rows.
    private static let kept = "app.db-plaintext"
    /// The copies of a database with a damaged log, and the record that names them.
    private static let copies = ["app.db-damaged", "app.db-damaged-wal", "app.db-attempt"]

    private static func faultOfSuccess(_ folder: TemporaryFolder, _ aside: TemporaryFolder) throws -> String? {
        let allowed = try [kept] + (folder.names.contains(copies[0]) ? copies : [])
        if let complaint = try stray(folder, allowing: allowed) ?? growth(folder, since: aside) { return complaint }
        for ending in ["", "-wal"] where try folder.names.contains(copies[0] + ending) {
            let copy = try Data(contentsOf: URL(filePath: folder.path(copies[0] + ending)))
            guard try copy == Data(contentsOf: URL(filePath: aside.path("app.db" + ending))) else {
                return "the copy app.db-damaged\(ending) is not equal to the original"
            }
        }
        // The log is merged into a kept original, which leaves WAL mode.
        if try folder.names.contains(kept),
            let wrong = try difference(aside, folder, kept, isEncrypted: false)?.split(separator: "\n")
                .first(where: { !$0.hasPrefix("journal_mode") })
        {
            return "kept otherwise: \(wrong)"
        }
        guard try !Data(contentsOf: URL(filePath: folder.path("app.db"))).starts(with: Data("SQLite format 3\0".utf8))
        else { return "reported as encrypted, but is not" }
        return try difference(aside, folder, isEncrypted: true)
    }

    /// A refused file must be unchanged, or be what SQLite itself makes of it during recovery.
    private static func faultOfRefusal(_ folder: TemporaryFolder, _ aside: TemporaryFolder) throws -> String? {
        if let complaint = try stray(folder) ?? growth(folder, since: aside) { return complaint }
        let endings = ["-shm"]
        if try FolderDigest(folder.url, ignoring: endings) == FolderDigest(aside.url, ignoring: endings) { return nil }
        return try difference(aside, folder, isEncrypted: false).map { "refused, but changed: \($0)" }
    }

    private static func stray(_ folder: TemporaryFolder, allowing others: [String] = []) throws -> String? {
        let known = ["app.db", "app.db-wal", "app.db-shm", "app.db-journal"] + others
        return try folder.names.first { !known.contains($0) }.map { "a file was left beside the database: \($0)" }
    }

    /// If a file is larger than a damaged file can be, it was written to by mistake.
    private static func growth(_ folder: TemporaryFolder, since aside: TemporaryFolder) throws -> String? {
        let most = try max(1 << 24, 2 * size(aside.url))
        let found = try size(folder.url)
        return found > most ? "the files have grown to \(found) bytes" : nil
    }

    /// Returns the size of all files of a folder.
    private static func size(_ folder: URL) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false)).reduce(0) { sum, name in
            let attributes = try FileManager.default.attributesOfItem(
                atPath: folder.appending(path: name).path(percentEncoded: false))
            return sum + (attributes[.size] as? Int ?? 0)
        }
    }

    private static func difference(
        _ aside: TemporaryFolder, _ folder: TemporaryFolder, _ name: String = "app.db", isEncrypted: Bool
    ) throws -> String? {
        let run = try Child.run(
            Child.mutator,
            ["compare", aside.path("app.db"), folder.path(name), isEncrypted ? "encrypted" : "plaintext"])
        guard run.status == 0 else { return "cannot be compared: status \(run.status) \(run.output.suffix(300))" }
        return run.output.isEmpty ? nil : run.output
    }
}

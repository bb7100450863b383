import CipherPlatform
import Foundation

/// Root converts a database in a user's folder, and the user replaces one name in the folder at one system call.
struct HostileFolder: Sendable {
    static let usage = "hostile-folder [--seconds N] [--operation NAME] [--call NAME] [--name NAME]"

    private static let calls = [
        // Operations that change something come first.
        "renameat2", "renameat", "fchmod", "fchown", "fsetxattr", "fremovexattr", "unlink", "unlinkat", "ftruncate",
        "fsync", "fdatasync", "readlink", "access", "openat", "pwrite64", "fstat", "newfstatat",
    ]
    private static let operations = ["encrypt-backup", "rekey", "decrypt", "launch", "launch-plaintext"]
    /// The ID of the folder's owner, and of the owner's group.
    private static let user: uid_t = 65_534

    private struct Series {
        let scenario: Scenario
        let call: String
        let victim: Victim
    }

    private let harness: Harness
    private let deadline: Deadline
    private let series: [Series]
    private let report = Report("hostile-folder", widths: [16, 12, 10, -9, -6])

    init(_ arguments: some Sequence<String>, in session: Session) throws {
        let options = try Options(
            arguments, usage: Self.usage, valued: ["--seconds", "--operation", "--call", "--name"])
        guard getuid() == 0 else { throw TrialError(detail: "this trial attacks root, so it must run as root") }
        deadline = Deadline(seconds: try options.number("--seconds") ?? 900)
        let scenarios = try Scenario.named(options["--operation"]).filter {
            options["--operation"] != nil || Self.operations.contains($0.name)
        }
        let victims = try Victim.named(options["--name"])
        series = (options["--call"].map { [$0] } ?? Self.calls).flatMap { call in
            scenarios.flatMap { scenario in
                victims.map { Series(scenario: scenario, call: call, victim: $0) }
            }
        }
        harness = try Harness(in: session, isRepeatable: true)
        // The user must have access to the folder.
        chmod(session.folder, 0o711)
    }

    /// Returns whether root's files were never changed or read.
    func run() throws -> Bool {
        report.row("operation", "call", "name", "points", "losses")
        try Workers.run(series, in: harness.session) { try run($0, $1) }
        report.say(deadline)
        return try report.conclude { totals in
            "root's files were \(totals.losses == 0 ? "never reached" : "reached \(totals.losses) times")"
                + " in \(totals.points) runs"
        }
    }

    private func run(_ series: Series, _ worker: Worker) throws {
        guard !deadline.isPast else { return }
        let trial = try Trial(harness, series.scenario, worker)
        let most = try trial.countCalls(["-e", "trace=\(series.call)"])
        var (number, lost) = (0, 0)
        while number < most, !deadline.isPast {
            number += 1
            guard let losses = try attack(trial, series, number) else { break }
            lost += losses.count
            report.complain(
                "\(series.scenario.name) \(series.call) \(number) \(series.victim.rawValue)", losses)
        }
        guard most > 0 else { return }
        report.add(points: number)
        report.row(
            series.scenario.name, series.call, series.victim.rawValue, "\(number)/\(most)", String(lost))
    }

    /// Returns what was lost; `nil` if the call was never made.
    private func attack(_ trial: Trial, _ series: Series, _ number: Int) throws -> [String]? {
        let worker = trial.worker
        let root = worker.folder + ".root"
        guard let database = trial.start.files[FolderState.database] else { throw TrialError(detail: "no database") }
        try RootFiles.lay(at: root, database)
        try trial.lay()
        try giveAway(worker.folder)
        let before = try RootFiles(of: root)
        // Every other run uses a link to a nonexistent file.
        let target = root + "/" + (number % 2 == 0 ? "new" : RootFiles.secret)
        let ending = try StoppedRun(worker: worker).run(trial.command, at: series.call, number) {
            try series.victim.replace(in: worker, by: target, as: Self.user)
        }
        guard let ending else { return nil }
        var losses: [String] = []
        if ending.cause == .timedOut { losses.append("it hangs") }
        if ending.cause == .exited(0), series.victim == .copy, try isLink(trial.file) {
            losses.append("the run succeeded, but the database is the file that replaced the copy")
        }
        if try RootFiles(of: root) != before {
            losses.append("root's files were changed: \(ending.output.replacing("\n", with: " "))")
        }
        if try RootFiles.wereCopied(to: worker.folder) {
            losses.append("root's file was copied into the user's folder")
        }
        return losses
    }

    private func giveAway(_ folder: String) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        for path in [folder] + names.map({ folder + "/" + $0 }) {
            guard chown(path, Self.user, Self.user) == 0 else {
                throw TrialError(detail: "the owner of \(path) cannot be changed")
            }
        }
        chmod(folder + "/" + FolderState.database, 0o644)
    }

    private func isLink(_ path: String) throws -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }
}

/// The name that the owner of the folder replaces.
enum Victim: String, CaseIterable, Sendable {
    case db
    case copy
    case wal
    case shm
    case journal
    case backup
    case unfinished
    case attempt

    static func named(_ name: String?) throws -> [Victim] {
        guard let name else { return allCases }
        guard let victim = Victim(rawValue: name) else { throw TrialError(detail: "there is no name \(name)") }
        return [victim]
    }

    /// The names, as a shell pattern.
    private var pattern: String {
        switch self {
        case .db: FolderState.database
        case .wal, .shm, .journal, .attempt: "\(FolderState.database)-\(rawValue)"
        case .backup: Scenario.backup
        case .copy: FolderState.database + "-upgrade-*"
        case .unfinished: Scenario.backup + "-*"
        }
    }

    /// Replaces the name with a link, as the user.
    ///
    /// A name with a random part is replaced only if such a file exists.
    func replace(in worker: Worker, by target: String, as user: uid_t) throws {
        let script = """
            cd "$1" || exit 0
            for name in \(pattern); do
                case $name in *"*") continue ;; esac
                mv -f "$name" "$name.aside" 2>/dev/null
                ln -s "$2" "$name"
            done
            """
        let words = [
            "setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "sh", "-c", script, "sh", worker.folder,
            target,
        ]
        _ = try Command(words: words).run(in: worker.session, output: worker.folder + ".attack")
    }
}

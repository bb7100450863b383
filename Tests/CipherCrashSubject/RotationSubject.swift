import CipherPlatform
internal import CipherStore
import CipherTestSupport

/// A store whose key is changed on opening.
///
/// The old key is dropped when the new one is on the disk.
enum RotationSubject {
    /// - Parameter place: Where the process is killed; `nil` for nowhere.
    static func run(_ folder: String, killedAt place: String?) throws {
        @Sendable func pass(_ here: String) {
            if here == place { kill(getpid(), SIGKILL) }
        }
        let new = FileKeyProvider(path: folder + "/new", createIfMissing: true)
        let rotation = KeyRotation(
            from: .file(folder + "/old"),
            to: .closure { purpose, database in
                let key = try new.key(for: purpose, database: database)
                if purpose == .createOrExisting { pass("asked") }
                return key
            }
        ) { _ in
            pass("done")
            unlink(folder + "/old")
            pass("dropped")
        }
        var options = ConversionOptions()
        options.busyTimeout = .milliseconds(200)
        options.progress = { pass($0.stage.rawValue) }
        let opened = try StoreOpening(
            configuration: Configuration(databaseName: "app.db", version: 23), directory: folder, provider: rotation,
            options: options
        ).run()
        print(([opened.report.outcome.rawValue] + opened.report.warnings.besidesLeases).joined(separator: "; "))
    }
}

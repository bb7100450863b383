import CipherPlatform
import Foundation

/// The files with which scenarios begin, made once.
final class StartingFiles: Sendable {
    enum Name: Hashable, Sendable {
        /// In WAL mode, with rows in the log.
        case plaintext
        case encrypted
        /// With a journal that must be rolled back.
        case plaintextHot
        case encryptedHot
        /// In WAL mode, with rows in the log, and a table with an overwritten page.
        case plaintextDamaged
        case encryptedDamaged
        /// With a table with an overwritten page, and a journal that must be rolled back.
        case damagedHot
        /// Encrypted, and opened by the app's new version.
        case migrated
        /// Not encrypted, and opened by the app's new version.
        case plaintextMigrated
        /// Encrypted, beside a backup of the migrated file.
        case restorable
        /// The leftovers of a killed encryption, in one combination.
        case leftovers(String)
    }

    /// The mode of the files, which a conversion must keep.
    ///
    /// It differs from the mode of files that a conversion makes.
    static let mode = 0o640

    private let states: [Name: FolderState]
    private let kept = Locked<[String: (order: Int, state: FolderState)]>([:])

    init(_ subject: Subject, in session: Session) throws {
        let folder = session.folder + "/start"
        let worker = Worker(session: session, number: 0)
        func run(_ arguments: [String]) throws {
            let ending = try worker.run(subject.command(arguments))
            guard ending.cause == .exited(0) else {
                throw TrialError(detail: "the subject cannot make a database: \(ending.output)")
            }
        }
        func state(_ arguments: [String], having ending: String, launched: [String]? = nil) throws -> FolderState {
            try? FileManager.default.removeItem(atPath: folder)
            mkdir(folder, 0o755)
            let file = folder + "/" + FolderState.database
            try run(["make", file] + arguments)
            for name in try FolderState(of: folder).files.keys { chmod(folder + "/" + name, mode_t(Self.mode)) }
            // Whoever opens the database first creates the index of a log again.
            unlink(file + "-shm")
            guard try FolderState(of: folder).files[FolderState.database + ending]?.bytes.isEmpty == false else {
                throw TrialError(detail: "the subject left nothing in \(FolderState.database)\(ending)")
            }
            if let launched { try run(["launch", file] + launched) }
            return try FolderState(of: folder)
        }
        let encrypted = try state(["encrypted"], having: "-wal")
        let migrated = try state(["encrypted"], having: "-wal", launched: [])
        try run(["backup", folder + "/" + FolderState.database])
        var restorable = encrypted
        restorable.files[Scenario.copy] = try FolderState(of: folder).files[Scenario.copy]
        // No file has this inode.
        restorable.numbers[Scenario.copy] = 0
        states = [
            .plaintext: try state(["plaintext"], having: "-wal"),
            .encrypted: encrypted,
            .plaintextHot: try state(["plaintext", "hot"], having: "-journal"),
            .encryptedHot: try state(["encrypted", "hot"], having: "-journal"),
            .plaintextDamaged: try state(["plaintext", "damaged"], having: "-wal"),
            .encryptedDamaged: try state(["encrypted", "damaged"], having: "-wal"),
            .damagedHot: try state(["plaintext", "hot", "damaged"], having: "-journal"),
            .migrated: migrated,
            .plaintextMigrated: try state(["plaintext"], having: "-wal", launched: ["decrypt"]),
            .restorable: restorable,
        ]
        try FileManager.default.removeItem(atPath: folder)
    }

    subscript(_ name: Name) -> FolderState {
        get throws {
            let leftovers: FolderState? =
                if case .leftovers(let composition) = name { kept.with { $0[composition]?.state } } else { nil }
            guard let state = states[name] ?? leftovers else { throw TrialError(detail: "there are no files \(name)") }
            return state
        }
    }

    /// Keeps the leftovers of a killed encryption, once in each combination.
    ///
    /// - Parameters:
    ///   - form: The form of the database.
    ///   - order: The leftovers with the lowest order are kept, whichever worker comes first.
    func keep(_ leftovers: FolderState, _ form: String, order: Int) {
        let parts = leftovers.files.keys.sorted().map { name in
            let part = name.dropFirst(FolderState.database.count).drop { $0 == "-" }
            return part.isEmpty ? form : String(part)
        }
        kept.with { kept in
            let composition = parts.joined(separator: "+")
            if let other = kept[composition], other.order <= order { return }
            kept[composition] = (order, leftovers)
        }
    }

    /// The combinations that were kept.
    var leftovers: [String] { kept.with { $0.keys.sorted() } }
}

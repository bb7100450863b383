/// An operation, the files with which it begins, and its result.
struct Scenario: Sendable {
    let name: String
    let start: StartingFiles.Name
    /// The arguments for CipherCrashSubject's operation; the file follows the first one.
    let operation: [String]
    /// The results of `CipherCrashSubject check` on the file before and after.
    let before: String
    let after: String
    /// The journal mode of the file before and after.
    var journalMode = "wal"
    /// Whether the plaintext file must be kept beside the new one.
    var keepsBackup = false
    /// The form of the file if its change was postponed and the rest was done.
    var waiting: String?

    /// Whether the damaged file must be kept beside the new one.
    var keepsDamaged: Bool { before.hasSuffix("-damaged") && !isRecovery }

    /// The damaged file that is kept, with its log or journal.
    static let damaged = FolderState.database + "-damaged"
    /// The names of the damaged file and of its log and journal.
    var kept: [String] { keepsDamaged ? ["", "-wal", "-journal"].map { Self.damaged + $0 } : [] }
    /// The plaintext file that is kept.
    static let backup = FolderState.database + "-plaintext"
    /// The backup that an operation makes or restores, or the file that a recovery makes.
    static let copy = "copy.db"
    /// The result of `CipherCrashSubject check` on the copy.
    var copyForm: String { isRecovery ? "encrypted" : before }

    /// How the operation may end when it runs again.
    static let endings = [
        "encrypted", "alreadyEncrypted", "shadow", "rekeyed", "alreadyRekeyed", "decrypted", "alreadyPlaintext",
        "launched", "backedUp", "restored", "recovered",
    ]

    /// A shadow proof never writes the database or its log.
    var isShadow: Bool { operation == ["shadow"] }
    var isLaunch: Bool { operation.first == "launch" }
    var isOpenEncryption: Bool { operation == ["launch", "encrypt-open"] }
    /// A backup of a file that nobody has open never writes the database or its log.
    var isBackup: Bool { operation == ["backup"] }
    /// A recovery to another name never writes the database, its log or its journal.
    var isRecovery: Bool { operation == ["recover-copy"] }
    var makesCopy: Bool { isBackup || isRecovery || operation == ["launch", "use"] }
    var restoresCopy: Bool { operation == ["restore"] }

    static let all = [
        Scenario(name: "encrypt", start: .plaintext, operation: ["encrypt"], before: "plaintext", after: "encrypted"),
        Scenario(
            name: "encrypt-backup", start: .plaintext, operation: ["encrypt", "backup"], before: "plaintext",
            after: "encrypted", keepsBackup: true),
        Scenario(
            name: "encrypt-hot", start: .plaintextHot, operation: ["encrypt"], before: "plaintext", after: "encrypted",
            journalMode: "delete"),
        Scenario(name: "shadow", start: .plaintext, operation: ["shadow"], before: "plaintext", after: "plaintext"),
        Scenario(name: "rekey", start: .encrypted, operation: ["rekey"], before: "encrypted", after: "rekeyed"),
        Scenario(
            name: "rekey-hot", start: .encryptedHot, operation: ["rekey"], before: "encrypted", after: "rekeyed",
            journalMode: "delete"),
        Scenario(name: "decrypt", start: .encrypted, operation: ["decrypt"], before: "encrypted", after: "plaintext"),
        Scenario(
            name: "decrypt-hot", start: .encryptedHot, operation: ["decrypt"], before: "encrypted", after: "plaintext",
            journalMode: "delete"),
        Scenario(
            name: "launch", start: .plaintext, operation: ["launch"], before: "plaintext", after: "encrypted-migrated"),
        Scenario(
            name: "launch-migrate", start: .encrypted, operation: ["launch"], before: "encrypted",
            after: "encrypted-migrated"),
        Scenario(
            name: "launch-open", start: .migrated, operation: ["launch"], before: "encrypted-migrated",
            after: "encrypted-migrated"),
        // The store is observed, written to, backed up meanwhile, suspended and resumed.
        Scenario(
            name: "launch-use", start: .migrated, operation: ["launch", "use"], before: "encrypted-migrated",
            after: "encrypted-migrated"),
        // The store is written to meanwhile.
        Scenario(
            name: "launch-change-key", start: .migrated, operation: ["launch", "change-key"],
            before: "encrypted-migrated", after: "rekeyed-migrated"),
        // The store is encrypted while it is written to.
        Scenario(
            name: "launch-encrypt-open", start: .plaintextMigrated, operation: ["launch", "encrypt-open"],
            before: "plaintext-migrated", after: "encrypted-migrated"),
        Scenario(
            name: "launch-rekey", start: .encrypted, operation: ["launch", "rekey"], before: "encrypted",
            after: "rekeyed-migrated", waiting: "encrypted-migrated"),
        Scenario(
            name: "launch-decrypt", start: .encrypted, operation: ["launch", "decrypt"], before: "encrypted",
            after: "plaintext-migrated", waiting: "encrypted-migrated"),
        Scenario(
            name: "launch-plaintext", start: .plaintext, operation: ["launch", "decrypt"], before: "plaintext",
            after: "plaintext-migrated"),
        Scenario(
            name: "encrypt-damaged", start: .plaintextDamaged, operation: ["encrypt", "recover"],
            before: "plaintext-damaged", after: "encrypted"),
        Scenario(
            name: "launch-damaged", start: .plaintextDamaged, operation: ["launch", "recover"],
            before: "plaintext-damaged", after: "encrypted-migrated"),
        Scenario(
            name: "recover", start: .encryptedDamaged, operation: ["recover"], before: "encrypted-damaged",
            after: "encrypted"),
        Scenario(
            name: "recover-hot", start: .damagedHot, operation: ["recover"], before: "plaintext-damaged",
            after: "encrypted", journalMode: "delete"),
        Scenario(name: "backup", start: .encrypted, operation: ["backup"], before: "encrypted", after: "encrypted"),
        Scenario(
            name: "recover-copy", start: .encryptedDamaged, operation: ["recover-copy"], before: "encrypted-damaged",
            after: "encrypted-damaged"),
        Scenario(
            name: "recover-copy-hot", start: .damagedHot, operation: ["recover-copy"], before: "plaintext-damaged",
            after: "plaintext-damaged", journalMode: "delete"),
        Scenario(
            name: "restore", start: .restorable, operation: ["restore"], before: "encrypted",
            after: "encrypted-migrated"),
    ]

    /// The encryption of a file with the leftovers of an earlier, killed encryption.
    static func encryption(among leftovers: String) -> Scenario {
        Scenario(
            name: "encrypt-after-\(leftovers)", start: .leftovers(leftovers), operation: ["encrypt"],
            before: "plaintext", after: "encrypted")
    }

    /// Returns the scenarios with a name, or all if there is no name.
    static func named(_ name: String?) throws -> [Scenario] {
        guard let name else { return all }
        let found = all.filter { $0.name == name }
        guard !found.isEmpty else { throw TrialError(detail: "there is no operation \(name)") }
        return found
    }
}

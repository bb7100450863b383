/// An operation, the file that it begins with and what it makes of it.
struct Scenario {
    let name: String
    /// Arguments of `CrashSubject make` behind the file; none where the operation makes it.
    let make: [String]
    let operation: [String]
    /// What `CrashSubject check` says before and after.
    let old: String
    let new: String
    var journalMode = "wal"
    /// Whether the plaintext file must be kept beside the new one.
    var keepsBackup = false
    /// Whether the operation is a store that acknowledges rows.
    var isStore = false

    /// How the operation may end when it is run again.
    static let endings = [
        "encrypted", "alreadyEncrypted", "rekeyed", "alreadyRekeyed", "decrypted", "alreadyPlaintext",
        "launched",
    ]

    static let all = [
        Scenario(name: "encrypt", make: ["plaintext"], operation: ["encrypt"], old: "plaintext", new: "encrypted"),
        Scenario(
            name: "encrypt-hot", make: ["plaintext", "hot"], operation: ["encrypt"], old: "plaintext",
            new: "encrypted", journalMode: "delete"),
        Scenario(
            name: "encrypt-backup", make: ["plaintext"], operation: ["encrypt", "backup"], old: "plaintext",
            new: "encrypted", keepsBackup: true),
        Scenario(name: "rekey", make: ["encrypted"], operation: ["rekey"], old: "encrypted", new: "rekeyed"),
        Scenario(
            name: "rekey-hot", make: ["encrypted", "hot"], operation: ["rekey"], old: "encrypted", new: "rekeyed",
            journalMode: "delete"),
        Scenario(name: "decrypt", make: ["encrypted"], operation: ["decrypt"], old: "encrypted", new: "plaintext"),
        Scenario(
            name: "decrypt-hot", make: ["encrypted", "hot"], operation: ["decrypt"], old: "encrypted",
            new: "plaintext", journalMode: "delete"),
        Scenario(
            name: "launch", make: ["plaintext"], operation: ["launch"], old: "plaintext", new: "encrypted-migrated"),
        Scenario(
            name: "launch-migrate", make: ["encrypted"], operation: ["launch"], old: "encrypted",
            new: "encrypted-migrated"),
        Scenario(
            name: "launch-rekey", make: ["encrypted"], operation: ["launch", "rekey"], old: "encrypted",
            new: "rekeyed-migrated"),
        Scenario(
            name: "launch-decrypt", make: ["encrypted"], operation: ["launch", "decrypt"], old: "encrypted",
            new: "plaintext-migrated"),
        Scenario(name: "store", make: [], operation: ["write", "12"], old: "", new: "", isStore: true),
    ]
}

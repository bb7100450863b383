/// A stage of an encryption upgrade.
public enum UpgradeStage: String, Sendable, Codable, CaseIterable {
    /// The legacy file is checkpointed and locked.
    case quiescing
    /// The encrypted copy is built.
    case building
    /// The copy is compared with the original.
    case proving
    /// The schema of the verified copy is migrated to the app's version, if a store is being opened.
    case migrating
    /// The copy replaces the original.
    case swapping
}

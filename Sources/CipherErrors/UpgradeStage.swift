/// A stage of an encryption upgrade.
public enum UpgradeStage: String, Sendable, Codable, CaseIterable {
    /// The legacy file is brought to rest and locked.
    case quiescing
    /// The encrypted copy is built.
    case building
    /// The copy is compared with the original.
    case proving
    /// The schema of the proven copy is brought to the app's version, where a store is opened.
    case migrating
    /// The copy takes the original's place.
    case swapping
}

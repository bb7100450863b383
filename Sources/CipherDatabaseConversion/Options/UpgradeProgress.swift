public import CipherErrors

/// The progress of an encryption upgrade.
public struct UpgradeProgress: Sendable, Equatable {
    /// The current stage.
    public let stage: UpgradeStage
    /// The completed share of the whole work, from 0 to 1.
    ///
    /// It never decreases.
    public let fraction: Double
    /// The number of bytes of the database that this stage has processed.
    public let bytes: Int64
    /// The size of the database in bytes.
    public let totalBytes: Int64

    package init(stage: UpgradeStage, fraction: Double, bytes: Int64, totalBytes: Int64) {
        self.stage = stage
        self.fraction = fraction
        self.bytes = bytes
        self.totalBytes = totalBytes
    }
}

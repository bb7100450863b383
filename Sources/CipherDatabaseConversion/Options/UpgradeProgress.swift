public import CipherErrors

/// How far an encryption upgrade is.
public struct UpgradeProgress: Sendable, Equatable {
    /// The stage that runs.
    public let stage: UpgradeStage
    /// How much of the whole is done, from 0 to 1; never goes back.
    public let fraction: Double
    /// Bytes of the database that this stage has been through.
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

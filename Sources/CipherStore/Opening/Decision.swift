package import CipherDatabaseConversion
package import CipherErrors
package import CipherHistory

/// Whether a file may be changed, and what to do with it: the decision table as one function without side effects.
package enum Decision: Equatable {
    /// Perform this step.
    case proceed(StorePlan.Step)
    /// Change nothing, and throw an error with this code.
    case refuse(StoreError.Code)

    /// The facts that are known about a file before the decision.
    package struct Facts: Equatable {
        var surface: Inspector.Surface
        /// The recorded version, `nil` if none is recorded.
        var recorded: SchemaVersion?
        /// The records of CipherStore itself, if the file could be read.
        var records: VersionRecords?
        /// The file's last history entry about encryption, if there is one.
        var stamp: HistoryTable.Stamp?
        /// Whether the key was proven to fit.
        var keyFits = false
        /// Whether the file should be changed to a key or cipher format other than those that opened it.
        var isChangeWanted = false

        package init(
            surface: Inspector.Surface, recorded: SchemaVersion? = nil, records: VersionRecords? = nil,
            stamp: HistoryTable.Stamp? = nil, keyFits: Bool = false, isChangeWanted: Bool = false
        ) {
            self.surface = surface
            self.recorded = recorded
            self.records = records
            self.stamp = stamp
            self.keyFits = keyFits
            self.isChangeWanted = isChangeWanted
        }
    }

    /// Decides from the header together with the threshold, because the header alone proves nothing.
    package static func make(_ facts: Facts, _ configuration: Configuration) -> Decision {
        let encryption = configuration.encryption
        switch facts.surface {
        case .staleSidecar: return .refuse(.staleSidecar)
        case .missing, .empty: return .proceed(encryption.isEnabled ? .create : .createPlaintext)
        case .plaintext:
            // A database without a record is older than any version record.
            let recorded = facts.recorded ?? .zero
            if recorded > configuration.version { return .refuse(.downgrade) }
            guard encryption.isEnabled else { return .proceed(.openPlaintext) }
            let isLegacy = encryption.sinceVersion.map { recorded < $0 } ?? (facts.stamp == nil)
            if facts.stamp == .plaintext || isLegacy { return .proceed(.encrypt) }
            return encryption.unexpectedPlaintext == .encrypt ? .proceed(.encrypt) : .refuse(.unexpectedPlaintext)
        case .opaque:
            guard facts.keyFits else { return .refuse(.keyDoesNotFit) }
            if let recorded = facts.recorded, recorded > configuration.version {
                return .refuse(.downgrade)
            }
            if encryption.isEnabled { return .proceed(facts.isChangeWanted ? .rekey : .open) }
            return encryption.whenDisabled == .decrypt ? .proceed(.decrypt) : .refuse(.encryptionDisabled)
        }
    }
}

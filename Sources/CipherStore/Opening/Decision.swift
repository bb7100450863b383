package import CipherDatabaseConversion
package import CipherErrors
package import CipherHistory

/// Whether a file may be touched, and what is to be done with it: the decision table, as one function without side effects.
package enum Decision: Equatable {
    /// Do this.
    case proceed(StorePlan.Step)
    /// Touch nothing.
    case refuse(StoreError.Code)

    /// What is known of a file before the decision.
    package struct Facts: Equatable {
        var surface: Inspector.Surface
        /// The recorded version, `nil` if none is recorded.
        var recorded: SchemaVersion?
        /// What CipherStore itself has recorded, where the file could be read.
        var records: VersionRecords?
        /// What the file's history says of its encryption, where it says anything.
        var stamp: HistoryTable.Stamp?
        /// Whether the key was shown to fit.
        var keyFits = false
        /// Whether the file is to be given another key or cipher format than those that opened it.
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

    /// The threshold and the header must agree; the header alone is no proof.
    package static func make(_ facts: Facts, _ configuration: Configuration) -> Decision {
        let encryption = configuration.encryption
        switch facts.surface {
        case .staleSidecar: return .refuse(.staleSidecar)
        case .missing, .empty: return .proceed(encryption.isEnabled ? .create : .createPlaintext)
        case .plaintext:
            // A database without any record is older than the records.
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

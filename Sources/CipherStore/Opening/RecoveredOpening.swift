internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite

extension StoreOpening {
    /// Replaces a damaged file with its migrated recoverable content, and opens the result.
    func recover(_ recovery: InPlaceRecovery) throws -> Opened {
        // The recorded version is read from the recovered content: the damaged file's record may not match what it
        // contains.
        try replace(.recovered, Decision.Facts(surface: .missing)) { finishing in
            let (report, fileKey) = try recovery.run { recovered, found in
                try prepare(recovered)
                try checkDecision(recovered, wasPlaintext: found.wasPlaintext)
                try HistoryTable.append(.recovered, detail: found.detail, in: recovered)
                try finishing(recovered)
            }
            return (report, fileKey)
        }
    }

    /// Refuses recovered content if an undamaged file with the same records would be refused.
    func checkDecision(_ recovered: Connection, wasPlaintext: Bool) throws {
        _ = try resolver.step(
            for: Decision.Facts(
                surface: wasPlaintext ? .plaintext : .opaque(hasPlaintextHeader: false),
                recorded: try resolver.recordedVersion(recovered), records: try VersionRecords(recovered),
                stamp: try HistoryTable.stamp(recovered), keyFits: !wasPlaintext),
            options.inspector(paths))
    }
}

internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite

extension StoreOpening {
    /// Has what a damaged file still contains take its place, migrated, and opens that.
    func recover(_ recovery: InPlaceRecovery) throws -> Opened {
        // What is recorded is read of what came back: of the damaged file it may not be what it holds.
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

    /// Refuses what was recovered where an undamaged file of such records would be refused.
    func checkDecision(_ recovered: Connection, wasPlaintext: Bool) throws {
        _ = try resolver.step(
            for: Decision.Facts(
                surface: wasPlaintext ? .plaintext : .opaque(hasPlaintextHeader: false),
                recorded: try resolver.recordedVersion(recovered), records: try VersionRecords(recovered),
                stamp: try HistoryTable.stamp(recovered), keyFits: !wasPlaintext),
            options.inspector(paths))
    }
}

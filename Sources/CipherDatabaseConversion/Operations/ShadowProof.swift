internal import CipherErrors
package import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// The encryption upgrade without its last step: the copy is built, proven and migrated as usual, and then discarded.
///
/// The database, its sidecars and their timestamps stay as they are. A real upgrade brings the file to rest first,
/// which writes to it. Here, one read transaction is held open instead, and commits by other connections are detected
/// at the end. In rollback mode, that transaction makes writers wait. In WAL mode, writers continue, and the proof does
/// not cover what they changed.
package struct ShadowProof {
    package let upgrade: EncryptionUpgrade
    package let inspector: Inspector

    package init(upgrade: EncryptionUpgrade, inspector: Inspector) {
        self.upgrade = upgrade
        self.inspector = inspector
    }

    private var paths: DatabasePaths { upgrade.paths }

    /// Builds the copy, compares it, and removes it.
    ///
    /// The caller holds the upgrade lock.
    ///
    /// - Parameter rehearse: Changes the proven copy as the upgrade would before it replaced the file.
    /// - Throws: The same errors as the upgrade; also ``StoreError`` with the code `needsRecovery` if a journal would
    ///   have to be rolled back first, or `busy` if another connection wrote meanwhile.
    package func run(_ rehearse: ((Connection) throws -> Void)? = nil) throws -> EncryptionReport {
        let began = ContinuousClock.now
        let options = upgrade.options
        let observer = UpgradeObserver(
            path: paths.database, report: options.progress, cancellation: options.cancellation)
        let preflight = Preflight(
            paths: paths, settings: options.format, keepBackup: false)
        let folder = try paths.openFolder()
        let status = try preflight.checkFiles(folder)
        var report = EncryptionReport(.shadow, path: paths.database)
        report.bytesBefore = status.size + (try FileSystem.size(paths.wal) ?? 0)
        observer.totalBytes = report.bytesBefore
        if let warning = try inUse(status) { report.warnings.append(warning) }
        if try LostCommits.exist(paths) {
            guard options.onDamage != .refuse else {
                throw StoreError.damaged(paths.database, LostCommits.finding)
            }
            report.warnings.append(
                "\(LostCommits.finding): a real upgrade would keep copies of the database and its -wal")
        }
        let isReadable: Void? = try inspector.readingPlaintext { snapshot in
            try preflight.checkSchema(snapshot)
            try MergedLogCheck(
                paths: paths, key: nil, extensions: options.extensions, busyTimeout: options.busyTimeout
            ).check(snapshot)
            let key = try upgrade.newFileKey()
            let keys = try UpgradeKeys(key, again: try upgrade.keyAskedAgain(key), settings: options.format)
            defer { keys.cancel() }
            report.warnings += try Leftovers.sweep(paths)
            // No other process sees this copy, and nothing is left of it whatever happens.
            let copy = try NewFile(withoutNameIn: folder, path: paths.database)
            try observer.locating {
                try observer.begin(.quiescing)
                try snapshot.whileUnchanged(paths, "during the shadow proof") {
                    let made = try ProvenCopy(
                        source: paths.database, sourceKey: nil, target: paths.database,
                        targetSettings: options.format, options: options
                    ).make(copy, keys, owner: status, observer, &report)
                    if made.losses.reasonForRecovery(options.onDamage) != nil {
                        report.warnings.append("a real upgrade would recover the database and keep the damaged file")
                    } else if !made.losses.descriptions.isEmpty {
                        report.warnings.append(
                            "a real upgrade would keep the plaintext original next to the encrypted database")
                    }
                    guard let rehearse else { return }
                    try observer.begin(.migrating)
                    try ReadBack(paths: paths, copy: copy, key: made.proven.key).lending(rehearse)
                    report.bytesAfter = try copy.size()
                }
            }
        }
        guard isReadable != nil else { throw inspector.needsRecovery() }
        observer.finish()
        report.seconds = (ContinuousClock.now - began).inSeconds
        report.stageSeconds = observer.secondsByName
        return report
    }

    /// Returns a warning if another connection has the file open: the file cannot be upgraded now, but its shadow proof
    /// is still possible.
    private func inUse(_ status: FileSystem.Status) throws -> String? {
        do {
            let ownership = try SoleOwnership.find(OriginalFile(paths.database, status), timeout: .zero)
            guard case .cannotTell = ownership, try inspector.header().isWriteAheadLog else { return nil }
            let file = try DatabaseFile(path: paths.database, access: .readWrite)
            if file.whileUnused(timeout: upgrade.options.busyTimeout, {}) != nil { return nil }
            return Self.inUse("another connection, in this or another process, is using the database")
        } catch let error as StoreError where error.code == .busy {
            return Self.inUse(error.detail)
        }
    }

    private static func inUse(_ who: String) -> String { "\(who): a real upgrade would fail with the error `busy`" }
}

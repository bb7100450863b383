internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration

extension StoreOpening {
    var keyChange: KeyChange {
        var options = options
        // A backup is made of a plaintext file only, and this file is not plaintext.
        options.keepBackup = false
        return KeyChange(
            paths: paths, provider: provider, formats: configuration.encryption.formats, options: options)
    }

    /// Opens an encrypted file that has been unlocked, and decrypts it or changes its key or format if required.
    func openEncrypted(
        _ step: StorePlan.Step, _ file: FileUnlocking.Unlocked, _ facts: Decision.Facts, _ inspector: Inspector,
        warnings: [String]
    ) throws -> Opened {
        let warnings = warnings + [file.fileKey.settings.authenticationWarning].compactMap { $0 }
        switch step {
        case .decrypt:
            let decryption = Decryption(
                paths, provider: provider, formats: [file.fileKey.settings], options: options)
            return try change(.decrypted, file, inspector, facts, warnings) { finishing in
                (try decryption.decrypt(file, inspector, finishing: finishing), nil)
            }
        case .rekey:
            let opened = try change(.rekeyed, file, inspector, facts, warnings) { finishing in
                let (report, fileKey) = try keyChange.convert(file, inspector, finishing: finishing)
                return (report, fileKey)
            }
            // Until the file has the new key, the previous one is needed.
            return opened.report.outcome == .rekeyed ? retiringPreviousKey(opened) : opened
        default:
            let told = try settleAttempts(file.fileKey)
            return retiringPreviousKey(try migrate(file.fileKey, warnings: warnings + told))
        }
    }

    /// Checks that the schema can be reached before the file is rebuilt.
    private func checkPlan(_ fileKey: FileKey, _ inspector: Inspector, _ facts: Decision.Facts) throws {
        _ = try inspector.readingEncrypted(
            key: fileKey.key, settings: fileKey.settings, hasPlaintextHeader: fileKey.settings.plaintextHeaderSize > 0
        ) { connection, _ in try SchemaMigrator(configuration: configuration).plan(connection, recorded: facts.recorded)
        }
    }

    /// Decrypts the file, or changes its key or format; if that cannot be done now, the file is opened as it is.
    private func change(
        _ outcome: OpenReport.Outcome, _ file: FileUnlocking.Unlocked, _ inspector: Inspector, _ facts: Decision.Facts,
        _ warnings: [String],
        by convert: (@escaping (Connection) throws -> Void) throws -> (report: EncryptionReport, fileKey: FileKey?)
    ) throws -> Opened {
        try checkPlan(file.fileKey, inspector, facts)
        do {
            return try replace(outcome, facts, warnings: warnings, by: convert)
        } catch let error as StoreError where error.leavesFileUsable && !isRecovered(error) {
            // The attempt counter stays after `repeatedFailure`; otherwise a watchdog would end every launch here.
            let told =
                try error.code == .repeatedFailure ? Leftovers.remaining(paths) : settleAttempts(file.fileKey)
            return try migrate(
                file.fileKey,
                warnings: warnings + told + [StoreError.putOff(error, isDecryption: outcome == .decrypted)])
        }
    }

    /// Whether the failure is damage that recovery will handle and that cannot wait.
    private func isRecovered(_ error: StoreError) -> Bool {
        error.code == .corrupt && options.onDamage == .recover && configuration.encryption.isEnabled
    }

    private func retiringPreviousKey(_ opened: Opened) -> Opened {
        guard let warning = keyChange.retirePreviousKey() else { return opened }
        return Opened(path: opened.path, fileKey: opened.fileKey, report: opened.report.warning(warning))
    }
}

extension StoreError {
    /// Returns the report's warning about a failed decryption or change of key or format.
    static func putOff(_ error: StoreError, isDecryption: Bool) -> String {
        "the \(isDecryption ? "decryption" : "key or format change") is postponed: \(reason(error))"
    }

    /// Whether a decryption, or a change of key or format, that failed with this error can wait, because the file is
    /// unchanged.
    ///
    /// A full disk or an extension of the app that has the file open should not lock any user out.
    ///
    /// The change can also wait if the new key is unavailable or equals the old one. The change is not postponed if the
    /// provider returned two different keys, or if the change was canceled.
    var leavesFileUsable: Bool {
        if isOfKeyProvider { return true }
        return switch code {
        case .busy, .noSpace, .permission, .corrupt, .proofFailed, .repeatedFailure, .inputOutput, .missingCollation,
            .missingFunction, .missingTokenizer, .engineTooOld, .keyUnchanged:
            true
        default: false
        }
    }
}

package import CipherErrors
internal import CipherSQLite

/// The exit status of the process, numbered as in sysexits(3).
package struct ExitStatus: Error, Equatable, Sendable {
    package let code: Int32

    package static let done = ExitStatus(code: 0)
    package static let usage = ExitStatus(code: 64)
    static let badData = ExitStatus(code: 65)
    static let noInput = ExitStatus(code: 66)
    static let internalFailure = ExitStatus(code: 70)
    static let cannotCreate = ExitStatus(code: 73)
    static let inputOutput = ExitStatus(code: 74)
    static let tryAgain = ExitStatus(code: 75)
    static let permission = ExitStatus(code: 77)
    static let configuration = ExitStatus(code: 78)

    /// Returns the exit status after a signal, numbered as shells do.
    static func signal(_ number: Int32) -> ExitStatus { ExitStatus(code: 128 + number) }

    /// What the numbers mean, for the help.
    package static let meanings: [(ExitStatus, String)] = [
        (.done, "done"),
        (.usage, "the command line is invalid"),
        (.badData, "the data is damaged or of the wrong kind, or the key is wrong"),
        (.noInput, "there is no such file or key"),
        (.internalFailure, "internal failure"),
        (.cannotCreate, "a file could not be created: it already exists, or the disk is full"),
        (.inputOutput, "reading or writing failed"),
        (.tryAgain, "another process has the file open, or the key store is locked: try again"),
        (.permission, "permission denied"),
        (.configuration, "the configuration or the engine is unsuitable for the database"),
        (.signal(2), "interrupted by SIGINT (143: by SIGTERM, 129: by SIGHUP)"),
    ]
}

extension ExitStatus {
    /// Creates the exit status of an error code; no other table maps errors to exit codes.
    package init(_ code: StoreError.Code) {
        self =
            switch code {
            case .missingFile, .keyUnavailable: .noInput
            case .notAFile, .keyDoesNotFit, .saltMissing, .keyMalformed, .keyChanged, .keyUnchanged,
                .unexpectedPlaintext,
                .staleSidecar, .corrupt, .recordedVersion, .migration:
                .badData
            case .keyFileInsecure, .permission: .permission
            case .noSpace, .nameTaken: .cannotCreate
            case .busy, .replaced, .needsRecovery, .cancelled, .keyStoreLocked, .keyStoreUnavailable: .tryAgain
            case .encryptionDisabled, .downgrade, .missingCollation, .missingFunction, .missingTokenizer,
                .engineTooOld, .plainSQLite, .configuration, .destructiveChanges, .upgradeNeeded:
                .configuration
            case .proofFailed, .repeatedFailure, .closed, .suspended, .readOnly, .misuse: .internalFailure
            case .inputOutput: .inputOutput
            }
    }

    /// Creates the exit status of a failure that SQLite reported and that no ``StoreError`` describes.
    init(_ error: DatabaseError) {
        self =
            if error.isBusy || error.needsRecovery {
                .tryAgain
            } else if error.isFull {
                .cannotCreate
            } else if error.isPermission {
                .permission
            } else if error.isInputOutput || error.isCannotOpen {
                .inputOutput
            } else if error.isOutOfMemory || error.code == DatabaseError.misuse {
                .internalFailure
            } else {
                .badData
            }
    }

    /// Creates the exit status of a key that cannot be used.
    init(_ error: KeyError) {
        self =
            switch error {
            case .empty, .malformed, .rawLength, .byteOrderMark, .database, .binary, .severalLines: .badData
            case .noRandomness, .derivationFailed: .internalFailure
            }
    }
}

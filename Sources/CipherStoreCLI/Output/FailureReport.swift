internal import CipherErrors
internal import CipherSQLite

/// A failure as it is reported: one line on standard error, and an object on standard output for programs.
struct FailureReport: Codable, Sendable {
    let code: String
    let message: String
    let path: String?
    let advice: String
    /// The stage of an upgrade that failed.
    private(set) var stage: UpgradeStage?
    /// The exit status of a command that fails with this; the report itself does not contain it.
    private(set) var status = ExitStatus.internalFailure

    init(_ error: any Error) {
        switch error {
        case let error as CommandFailure:
            self.init(error.code, error.message, path: error.path, advice: error.advice, error.status)
        case let error as StoreError:
            // SQLite's own message names tables and columns, never values.
            let underlying = error.underlying.map { " (\($0.message), SQLite code \($0.extendedCode))" } ?? ""
            self.init(
                error.code.rawValue, error.detail + underlying, path: error.path,
                advice: Self.advice(error), ExitStatus(error.code))
            stage = error.stage
        case let error as DatabaseError:
            self.init(
                "database", "\(error.message) (SQLite code \(error.extendedCode))", path: error.path, advice: "",
                ExitStatus(error))
        case let error as KeyError:
            self.init("key", error.description, path: nil, advice: "", ExitStatus(error))
        default:
            // The description of an unknown error might quote anything.
            self.init(
                "internal", "unexpected error of type \(type(of: error))", path: nil, advice: "", .internalFailure)
        }
    }

    /// Returns the advice for a person at a terminal, who cannot register an app's code.
    private static func advice(_ error: StoreError) -> String {
        switch error.code {
        case .keyDoesNotFit where error.advice.hasPrefix("check the key"):
            error.advice
                + "; to find out why the key does not open the file, run cipherstore diagnose with the file and this key"
        case .missingCollation, .missingFunction, .missingTokenizer:
            "cipherstore has no option that adds collations, functions or tokenizers; run this operation in the app, "
                + "with the CipherStore library, and register the missing one there" + rest(of: error)
        default: error.advice
        }
    }

    /// Returns what follows the advice to register an object in the app.
    private static func rest(of error: StoreError) -> String {
        if let registration = error.underlying?.unregistered?.advice, error.advice.hasPrefix(registration) {
            return String(error.advice.dropFirst(registration.count))
        }
        return error.change.map { "; \($0.rawValue)" } ?? ""
    }

    private init(_ code: String, _ message: String, path: String?, advice: String, _ status: ExitStatus) {
        self.code = code
        self.message = message
        self.path = path
        self.advice = advice
        self.status = status
    }

    var line: String {
        [path, message].compactMap { $0 }.joined(separator: ": ") + (advice.isEmpty ? "" : "; \(advice)")
    }

    private enum CodingKeys: String, CodingKey { case code, message, path, advice, stage }
}

internal import CipherStore
import Foundation

/// One release of an app, as `Scripts/lives` describes it.
struct Release: Decodable {
    /// The folder of the database.
    let directory: String
    /// A configuration file that the app ships; if there is none, the app specifies everything in Swift.
    let configurationFile: String?
    let database: String
    let version: SchemaVersion
    let encryption: Encryption
    let recordedVersion: Recorded?
    let steps: Steps?
    let hooks: Hooks
    let key: Key
    let backfills: [String]
    let work: [Operation]
    let ending: Ending
    let death: Death?
    /// The time in milliseconds.
    let busyTimeout: Int?

    struct Encryption: Decodable {
        let enabled: Bool
        let shadow: Bool?
        let sinceVersion: SchemaVersion?
        let unexpectedPlaintext: String?
        let whenDisabled: String?
        let keepBackup: Bool?
        let maximumAttempts: Int?
        let onRepeatedFailure: String?
        let kdfIterations: Int?
    }

    /// Where the version of a legacy file is: in a table, or in a file that a closure of the app reads.
    struct Recorded: Decodable {
        let table: String?
        let column: String?
        let filter: [String: String]?
        let offset: Int?
        let file: String?
    }

    struct Steps: Decodable {
        let isDotted: Bool
        let baseline: Step
        let updates: [Step]
        let everyLaunch: [String]
    }

    struct Step: Decodable {
        let version: SchemaVersion
        let sql: [String]
        let isSwift: Bool
    }

    /// What the app does in Swift during the opening, for schema sources without steps.
    struct Hooks: Decodable {
        let firstInstall: [String]?
        let upgrades: [Step]?
        let unchanged: [String]?
        let everyLaunch: [String]?
    }

    indirect enum Key: Decodable, Sendable {
        case raw(hex: String)
        case passphrase(String)
        case file(path: String, create: Bool)
        case environment(String)
        case rotation(from: Key, to: Key, drops: String?)
        /// Fails after the first requests.
        case failing(Key, after: Int, error: String)
        /// Returns another key after the first requests.
        case changing(Key, after: Int, other: Key)

        private enum Keys: String, CodingKey {
            case kind, hex, text, path, create, name, from, to, drops, of, after, error, other
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: Keys.self)
            switch try values.decode(String.self, forKey: .kind) {
            case "raw": self = .raw(hex: try values.decode(String.self, forKey: .hex))
            case "passphrase": self = .passphrase(try values.decode(String.self, forKey: .text))
            case "file":
                self = .file(
                    path: try values.decode(String.self, forKey: .path),
                    create: try values.decode(Bool.self, forKey: .create))
            case "environment": self = .environment(try values.decode(String.self, forKey: .name))
            case "rotation":
                self = .rotation(
                    from: try values.decode(Key.self, forKey: .from), to: try values.decode(Key.self, forKey: .to),
                    drops: try values.decodeIfPresent(String.self, forKey: .drops))
            case "failing":
                self = .failing(
                    try values.decode(Key.self, forKey: .of), after: try values.decode(Int.self, forKey: .after),
                    error: try values.decode(String.self, forKey: .error))
            case "changing":
                self = .changing(
                    try values.decode(Key.self, forKey: .of), after: try values.decode(Int.self, forKey: .after),
                    other: try values.decode(Key.self, forKey: .other))
            case let kind:
                throw DecodingError.dataCorruptedError(
                    forKey: .kind, in: values, debugDescription: "no provider is called \(kind)")
            }
        }
    }

    /// What the app's user does after the store has opened, in one transaction each.
    struct Operation: Decodable {
        /// The name with which the transaction is acknowledged.
        let name: String
        let sql: String
        /// The values in order; text that begins with `x:` is a blob in hexadecimal digits.
        let values: [String]
    }

    enum Ending: String, Decodable {
        /// The app closes the store.
        case close
        /// The process ends without closing the store.
        case exit
    }

    /// Where the process kills itself: a point in the code, and how often the process must reach it.
    struct Death: Decodable {
        let place: String
        let number: Int
    }

    init(contentsOf path: String) throws {
        self = try JSONDecoder().decode(Release.self, from: Data(contentsOf: URL(filePath: path)))
    }
}

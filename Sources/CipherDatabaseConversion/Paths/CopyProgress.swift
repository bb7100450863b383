internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// How far a copy is that follows a database, for the launch after the one that made it.
struct CopyProgress: Equatable {
    /// The start of the system in which the copy was written: a later one may lack what was not synced.
    let boot: String
    /// The last transaction in the log that the copy has; `nil` if the log does not tell it from another one.
    var end: LogHeader.TransactionEnd?

    /// `nil` if the system does not tell one start from another.
    init?(end: LogHeader.TransactionEnd?) {
        guard let boot = FileSystem.bootIdentity() else { return nil }
        self.boot = boot
        self.end = end?.isSealed == true ? end : nil
    }

    /// Whether the copy is as it was written.
    var isOfThisStart: Bool { boot == FileSystem.bootIdentity() }

    // MARK: As text

    var text: String { "\(boot) \(end?.text ?? "-")" }

    /// `nil` for what is no such text.
    init?(text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2 else { return nil }
        boot = String(words[0])
        end = LogHeader.TransactionEnd(text: String(words[1]))
        guard end != nil || words[1] == "-" else { return nil }
    }
}

internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// The progress of a copy that follows a database, for the launch after the one that made the copy.
struct CopyProgress: Equatable {
    /// The boot of the system during which the copy was written.
    ///
    /// After another boot, unsynced data may be missing.
    let boot: String
    /// The last transaction in the log that the copy contains; `nil` if the log cannot distinguish it from another one.
    var end: LogHeader.TransactionEnd?

    /// Creates the progress; `nil` if the system cannot tell one boot from another.
    init?(end: LogHeader.TransactionEnd?) {
        guard let boot = FileSystem.bootIdentity() else { return nil }
        self.boot = boot
        self.end = end?.isSealed == true ? end : nil
    }

    /// Whether the system has not restarted since, so that all data written to the copy is in it.
    var isOfThisStart: Bool { boot == FileSystem.bootIdentity() }

    // MARK: As text

    var text: String { "\(boot) \(end?.text ?? "-")" }

    /// Parses the text of a record; `nil` if the text has another form.
    init?(text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2 else { return nil }
        boot = String(words[0])
        end = LogHeader.TransactionEnd(text: String(words[1]))
        guard end != nil || words[1] == "-" else { return nil }
    }
}

internal import CipherSQLite

/// The pages of an encrypted database whose HMACs were checked.
///
/// Source: SQLCipher Design, "Per-Page MAC".
public enum PageAuthentication: String, Sendable, Codable {
    /// Every page.
    case everyPage
    /// Every page that the database uses.
    ///
    /// SQLCipher before version 4 does not check the other pages, and a page of which the log has a newer version is not
    /// in use.
    case everyPageInUse
    /// Every page that the database uses, except the readable part of the header on page 1.
    case everyPageInUseExceptHeader
    /// No page, because cipher format 1 has no HMACs.
    case none

    /// The pages that are checked when a whole database with these settings is read.
    init(_ settings: CipherSettings) {
        self =
            !settings.isAuthenticated
            ? .none
            : settings.plaintextHeaderSize > 0
                ? .everyPageInUseExceptHeader : Engine.current.hasCipherIntegrityCheck ? .everyPage : .everyPageInUse
    }
}

extension CipherSettings {
    /// The warning about a file whose pages are not authenticated; `nil` for any other file.
    package var authenticationWarning: String? {
        guard !isAuthenticated else { return nil }
        return "the file is not authenticated, because cipher format \(compatibility) has no HMACs: anyone who can "
            + "write the file can change its rows"
    }
}

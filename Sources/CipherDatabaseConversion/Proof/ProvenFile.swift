internal import CipherRecovery
internal import CipherSQLite
internal import CipherSystemFiles

/// A file that a proof has compared with the database that the file may replace.
///
/// Only the result of a proof creates one, and only the proof itself creates that result. ``Swap`` consumes the file, so
/// code that replaces a database without a proof, or swaps a file twice, does not compile.
struct ProvenFile: ~Copyable {
    let file: NewFile
    /// The file's key; `nil` for a plaintext file.
    let key: FileKey?

    /// Creates a file whose rows and indexes were compared.
    init(_ file: NewFile, _ key: FileKey?, _: borrowing CopyProof.Outcome) {
        self.file = file
        self.key = key
    }

    /// Creates a file whose pages were compared.
    init(_ file: NewFile, _ key: FileKey, _: borrowing PagesProof.Outcome) {
        self.file = file
        self.key = key
    }

    /// Creates a file whose rows were compared with those that a damaged database still contains.
    init(_ file: NewFile, _ key: FileKey, _: borrowing RecoveryProof.Outcome) {
        self.file = file
        self.key = key
    }
}

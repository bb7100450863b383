/// How an encrypted copy is compared with its original before it takes the original's place.
///
/// In both cases, each record of each table and each entry of each index is compared, in order, and each of their pages
/// is authenticated.
public enum ProofReader: String, Sendable, CaseIterable {
    /// Compares the records on the pages of both files, if the original is a plaintext file at rest and the copy has
    /// SQLCipher 4's default format. SQLCipher reads the schema, every interior page and a random hundredth of the
    /// other pages.
    ///
    /// Tables and indexes whose records differ in their bytes, and files of other formats, are compared with SQL.
    case records
    /// Compares with SQL alone: SQLCipher reads every table and index of the copy.
    case engine
}

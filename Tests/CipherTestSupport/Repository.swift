public import Foundation

/// The files of this repository that tests read.
public enum Repository {
    /// The repository's folder.
    public static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The folder of the example configurations.
    public static let examples = root.appending(path: "Config")
    /// The folder of databases of every older version of the example app.
    public static let fixtures = root.appending(path: "Tests/CipherStoreTests/Fixtures")
    /// The folder of files that once caused a failure.
    public static let hostileFiles = root.appending(path: "Tests/CipherStoreTests/Hostile")
}

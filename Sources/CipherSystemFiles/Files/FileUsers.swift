package import CipherErrors

/// The processes that have a file open.
package enum FileUsers: Equatable {
    case thisProcess
    /// The other processes that could be detected, each with its number and program.
    case others([String])

    /// Returns the error for a run that needs exclusive access to the file.
    package func busy(_ path: String) -> StoreError {
        switch self {
        case .thisProcess:
            return StoreError(
                .busy, path: path, "this process already has the database open",
                advice: "close all connections to the database in this process, including those of other SQLite "
                    + "libraries, and try again",
                changed: .nothing)
        case .others(let found):
            let who =
                switch found.count {
                case 0: "another process has"
                case 1: "process \(found[0]) has"
                default: "processes \(found.prefix(5).joined(separator: ", ")) have"
                }
            return .busy(path, "\(who) the database open", retry: .afterClosing)
        }
    }
}

internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The options that make a command work on all databases below a folder.
enum FleetOptions {
    static let recursive = Option(
        "recursive", "Take a folder, and work on every database in it and below. With --json there is a line for each.")
    static let jobs = Option(
        "jobs", value: "N", "With --recursive: how many databases at a time (as many as there are processors).")
    static let name = Option(
        "name", value: "PATTERN", kind: .pattern,
        "With --recursive: only files whose name matches, such as 'tenant-*.db'.")
    static let all = [recursive, jobs, name]

    /// What the help of each such command says.
    static let note =
        "With --recursive the exit status is the number of databases that failed, 63 for that many or more; the rest of "
        + "the numbers mean that the run as a whole failed or was ended. A database that fails stops no other. Run the "
        + "command again to go on: what is done already is reported as such. Symbolic links are not followed."

    /// Whether a folder was asked for.
    ///
    /// - Throws: ``CommandFailure`` with `usage` where an option only makes sense with a folder.
    static func isFleet(_ invocation: Invocation) throws -> Bool {
        if invocation.has(recursive) { return true }
        if let path = invocation.operands.first, try FileSystem.status(path)?.isDirectory == true {
            throw CommandFailure(
                .badData, StoreError.Code.notAFile.rawValue, path: path, "this is a directory",
                advice: "give the path of a database file, or add --\(recursive.name) to work on every database in it")
        }
        if let option = [jobs, name].first(where: invocation.has) {
            throw CommandFailure.usage("--\(option.name) is for --\(recursive.name)")
        }
        return false
    }

    static func jobs(_ invocation: Invocation) throws -> Int {
        guard let text = invocation[jobs] else { return min(64, ProcessInfo.processInfo.activeProcessorCount) }
        guard let count = Int(text), (1...64).contains(count) else {
            throw CommandFailure.usage("--\(jobs.name) takes a number from 1 to 64")
        }
        return count
    }

    static func names(_ invocation: Invocation, default usual: DatabaseSearch.Names) -> DatabaseSearch.Names {
        invocation[name].map { .matching($0) } ?? usual
    }
}

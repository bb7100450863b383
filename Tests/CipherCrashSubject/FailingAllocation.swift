import CCipherSubjectShims
import Foundation

/// The allocation of SQLite that fails, as the environment says.
enum FailingAllocation {
    case none
    case counting
    case failing

    /// Takes the place of SQLite's allocator; the library must not be in use yet.
    static func install() throws -> FailingAllocation {
        guard let text = ProcessInfo.processInfo.environment["FAILING_ALLOCATION"] else { return .none }
        let isLasting = text.hasSuffix("+")
        guard let first = Int64(isLasting ? text.dropLast() : text[...]) else { exit(64) }
        guard fm_install(first, isLasting ? 1 : 0) == 0 else { exit(70) }
        return first == 0 ? .counting : .failing
    }
}

import CCipherSubjectShims
import Foundation

/// The allocation in SQLite that fails, as specified in the environment.
enum FailingAllocation {
    case none
    case counting
    case failing

    /// Replaces SQLite's allocator.
    ///
    /// The library must not be in use yet.
    static func install() throws -> FailingAllocation {
        guard let text = ProcessInfo.processInfo.environment["FAILING_ALLOCATION"] else { return .none }
        let isLasting = text.hasSuffix("+")
        guard let first = Int64(isLasting ? text.dropLast() : text[...]) else { exit(64) }
        guard fm_install(first, isLasting ? 1 : 0) == 0 else { exit(70) }
        return first == 0 ? .counting : .failing
    }
}

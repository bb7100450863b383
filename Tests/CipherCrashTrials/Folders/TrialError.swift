/// Why a trial cannot be made or judged, so that it has no result.
struct TrialError: Error, CustomStringConvertible {
    let detail: String
    var description: String { detail }
}

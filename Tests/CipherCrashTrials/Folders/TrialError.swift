/// Why a trial cannot be made or judged: no result may be drawn from it.
struct TrialError: Error, CustomStringConvertible {
    let detail: String
    var description: String { detail }
}

/// What an old connection does, how a file is converted, and how its next writer ends.
struct Schedule: CustomStringConvertible {
    enum Conversion: String, CaseIterable { case encrypt, rekey, decrypt, launch }
    enum Use: String, CaseIterable {
        case opened, idle, reading, cursor, exclusive, writing

        /// What the connection has done when the conversion begins or continues.
        func lines(_ mode: String) -> [String] {
            let set = mode == "WAL" ? [] : ["PRAGMA journal_mode = \(mode)"]
            let read = "SELECT count(*) FROM t"
            switch self {
            case .opened: return []
            case .idle: return set + [read]
            case .reading: return set + ["BEGIN", read]
            case .cursor: return set + ["half SELECT a FROM t"]
            case .exclusive: return set + ["PRAGMA locking_mode = EXCLUSIVE", read]
            case .writing: return set + ["BEGIN IMMEDIATE", "INSERT INTO t VALUES ('begun')"]
            }
        }
    }
    enum Place: String, CaseIterable { case here, elsewhere }
    enum Time: String, CaseIterable { case before, meanwhile }
    /// Whether the new file's writer is killed, before or after the old connection continues.
    enum Crash: String, CaseIterable { case none, first, last }

    static let modes = ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF", "WAL"]
    static let count =
        Conversion.allCases.count * modes.count * Use.allCases.count * Place.allCases.count * Time.allCases.count
        * Crash.allCases.count

    let conversion: Conversion
    let mode: String
    let use: Use
    let place: Place
    let time: Time
    let crash: Crash

    /// Returns the schedule for a number; consecutive numbers are spread over all schedules.
    init(_ number: Int) {
        // Coprime to the count, so that each schedule occurs once.
        var rest = number * 1_087 % Self.count
        func next<Element>(_ all: [Element]) -> Element {
            defer { rest /= all.count }
            return all[rest % all.count]
        }
        conversion = next(Conversion.allCases)
        mode = next(Self.modes)
        use = next(Use.allCases)
        place = next(Place.allCases)
        time = next(Time.allCases)
        crash = next(Crash.allCases)
    }

    var description: String {
        "\(conversion), \(mode), \(use), \(place), opened \(time), the new writer's crash: \(crash)"
    }
}

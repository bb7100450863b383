/// A store that is written to, and acknowledges each row.
struct WrittenStore: Recorded {
    static let name = "store"
    private static let (earlierRows, rows) = (3, 12)

    let worker: Worker
    let start: FolderState
    private let subject: Subject

    init(_ subject: Subject, _ worker: Worker) throws {
        self.subject = subject
        self.worker = worker
        try FolderState(files: [:], numbers: [:]).lay(at: worker.folder, Inodes())
        let ending = try worker.run(subject.command(["write", worker.folder, String(Self.earlierRows)]))
        guard ending.cause == .exited(0) else {
            throw TrialError(detail: "the subject cannot make a store: \(ending.output)")
        }
        start = try FolderState(of: worker.folder)
    }

    var command: Command { subject.command(["write", worker.folder, String(Self.rows)]) }

    /// The store must contain every acknowledged row, and at most one more.
    func judge(_ state: FolderState, _ inodes: Inodes, acknowledged: [Int]) throws -> (isNew: Bool, losses: [String]) {
        try state.lay(at: worker.folder, inodes)
        let found = try worker.run(subject.command(["count", worker.folder])).output
        let least = acknowledged.last ?? Self.earlierRows
        guard let rows = Int(found), (least...least + 1).contains(rows) else {
            return (false, ["\(least) rows acknowledged, found: \(found)"])
        }
        return (rows > least, [])
    }
}

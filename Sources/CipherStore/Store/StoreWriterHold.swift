internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSystemFiles

/// Prevents the store's writer from committing and, by holding the write lock, also prevents other processes from
/// committing.
///
/// It waits for its turn among the store's writes, so later writes cannot delay it.
final class StoreWriterHold: WriterHold {
    let isWriteAheadLog: Bool
    private enum Ending { case commit, rollback }

    private let ended: BlockingAnswer<Ending>
    /// The result of the job that holds the writer.
    private let outcome: BlockingAnswer<Void>

    /// Waits for the writer, blocking the calling thread.
    ///
    /// - Parameter caller: The job whose closure waits for this object.
    /// - Throws: ``StoreError`` with the code `closed`, `suspended` or `cancelled`; ``DatabaseError`` if another
    ///   process holds the lock.
    init(
        _ writer: ConnectionQueue, path: String, calledBy caller: ConnectionJob?, _ cancellation: UpgradeCancellation?
    ) throws {
        let begun = BlockingAnswer<Bool>()
        let (ended, outcome) = (BlockingAnswer<Ending>(), BlockingAnswer<Void>())
        (self.ended, self.outcome) = (ended, outcome)
        writer.submit(
            ConnectionJob(.outside, of: writer.identity, calledBy: caller) { connection in
                try connection.execute("BEGIN IMMEDIATE")
                defer { try? connection.execute("ROLLBACK") }
                begun.give(.success(try connection.value(String.self, "PRAGMA journal_mode") == "wal"))
                if try ended.wait() == .commit { try connection.commitUnchangedPage() }
            } completion: {
                if case .failure(let error) = $0 { begun.give(.failure(error)) }
                outcome.give($0)
            })
        var answer: Result<Bool, any Error>?
        while answer == nil, cancellation?.isCancelled != true {
            answer = begun.wait(until: .now + .seconds(3_600), or: cancellation)
        }
        do {
            guard let answer, cancellation?.isCancelled != true else { throw StoreError.cancelled(path) }
            isWriteAheadLog = try answer.get()
        } catch {
            ended.give(.success(.rollback))
            throw error
        }
    }

    func endWithCommit() throws {
        ended.give(.success(.commit))
        try outcome.wait()
    }

    func end() { ended.give(.success(.rollback)) }
}

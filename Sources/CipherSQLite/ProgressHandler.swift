internal import CCipherEngine

/// What is asked, every so many steps of SQLite's virtual machine, whether a statement may continue.
final class ProgressHandler {
    fileprivate let steps: Int32
    fileprivate let body: () -> Bool

    init(steps: Int32, body: @escaping () -> Bool) {
        self.steps = steps
        self.body = body
    }
}

extension Connection {
    /// Calls `body` every `steps` steps of SQLite's virtual machine; `false` ends the statement with
    /// `SQLITE_INTERRUPT`.
    ///
    /// `nil` removes it.
    ///
    /// The corresponding C function is `sqlite3_progress_handler`.
    package func setProgressHandler(every steps: Int32, _ body: (() -> Bool)?) {
        setProgressHandler(body.map { ProgressHandler(steps: steps, body: $0) })
    }

    /// The same, of a handler that was in force before.
    func setProgressHandler(_ handler: ProgressHandler?) {
        progressHandler = handler
        guard let progressHandler else {
            sqlite3_progress_handler(handle, 0, nil, nil)
            return
        }
        sqlite3_progress_handler(
            handle, progressHandler.steps,
            { context in
                guard let context else { return 0 }
                return Unmanaged<ProgressHandler>.fromOpaque(context).takeUnretainedValue().body() ? 0 : 1
            }, Unmanaged.passUnretained(progressHandler).toOpaque())
    }
}

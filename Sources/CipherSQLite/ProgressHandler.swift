internal import CCipherEngine

/// A closure that decides, after a number of steps of SQLite's virtual machine, whether a statement may continue.
final class ProgressHandler {
    fileprivate let steps: Int32
    fileprivate let body: () -> Bool

    init(steps: Int32, body: @escaping () -> Bool) {
        self.steps = steps
        self.body = body
    }
}

extension Connection {
    /// Calls `body` every `steps` steps of SQLite's virtual machine; if it returns `false`, the statement ends with
    /// `SQLITE_INTERRUPT`.
    ///
    /// If `body` is `nil`, the handler is removed.
    ///
    /// The corresponding C function is `sqlite3_progress_handler`.
    package func setProgressHandler(every steps: Int32, _ body: (() -> Bool)?) {
        setProgressHandler(body.map { ProgressHandler(steps: steps, body: $0) })
    }

    /// Sets a handler that was in use before; `nil` removes it.
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

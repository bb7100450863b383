internal import CCipherEngine

/// A closure that decides, after a number of steps of SQLite's virtual machine, whether a statement may continue.
final class ProgressHandler {
    fileprivate let steps: Int32
    private let body: () -> Bool
    private var taken = 0

    init(steps: Int32, body: @escaping () -> Bool) {
        self.steps = steps
        self.body = body
    }

    /// Returns whether the statement may continue after further steps, of which a part may not be SQLite's own.
    func mayContinue(after further: Int) -> Bool {
        taken += further
        while taken >= steps {
            taken -= Int(steps)
            guard body() else { return false }
        }
        return true
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
                let handler = Unmanaged<ProgressHandler>.fromOpaque(context).takeUnretainedValue()
                return handler.mayContinue(after: Int(handler.steps)) ? 0 : 1
            }, Unmanaged.passUnretained(progressHandler).toOpaque())
    }
}

internal import CipherPlatform

/// The result of checking whether a file was open elsewhere before it was converted.
package enum SoleOwnership: Equatable, Sendable {
    case proven
    /// The system cannot report this, for the associated reason, so the file may be open elsewhere.
    case cannotTell(String)

    /// Determines whether the file is open elsewhere, before SQLite opens it.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for other processes to close the file.
    ///   - check: Ends the wait by throwing.
    /// - Throws: ``StoreError`` with the code `busy` if another process, or another part of this one, has it open.
    package static func find(
        _ file: OriginalFile, timeout: Duration, checking check: () throws -> Void = {}
    ) throws -> SoleOwnership {
        switch try waiting(timeout, file, checking: check) {
        case .granted: .proven
        case .unavailable(let reason): .cannotTell(reason)
        case .inUse(let users): throw users.busy(file.path)
        }
    }

    /// Requests a lease until the file is not open elsewhere, or the timeout has passed.
    package static func waiting(
        _ timeout: Duration, _ file: OriginalFile, checking check: () throws -> Void
    ) throws -> LeasedFile.Answer {
        let deadline = ContinuousClock.now.advanced(by: max(timeout, shortest))
        while true {
            let answer = try LeasedFile.ask(file)
            guard case .inUse = answer, ContinuousClock.now < deadline else { return answer }
            try check()
            // The system does not report when a file is closed, so the lease must be requested again.
            usleep(10_000)
        }
    }

    /// The minimum time to wait, because a process that is being started has its parent's descriptors until it executes
    /// its program.
    private static let shortest: Duration = .milliseconds(250)
}

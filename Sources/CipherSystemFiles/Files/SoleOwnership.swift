#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Whether no one else had a file open before it was converted.
package enum SoleOwnership: Equatable, Sendable {
    case proven
    /// The system does not tell, for this reason; that no one has it open is not known then.
    case cannotTell(String)

    /// Finds out, before SQLite opens the file.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for others to close it.
    ///   - check: Ends the waiting by throwing.
    /// - Throws: ``StoreError`` with `busy` if another process, or another part of this one, has it open.
    package static func find(
        _ file: OriginalFile, timeout: Duration, checking check: () throws -> Void = {}
    ) throws -> SoleOwnership {
        switch try waiting(timeout, file, checking: check) {
        case .granted: .proven
        case .unavailable(let reason): .cannotTell(reason)
        case .inUse(let users): throw users.busy(file.path)
        }
    }

    /// Asks for a lease until no one else has the file open, or the time is over.
    package static func waiting(
        _ timeout: Duration, _ file: OriginalFile, checking check: () throws -> Void
    ) throws -> LeasedFile.Answer {
        let deadline = ContinuousClock.now.advanced(by: max(timeout, shortest))
        while true {
            let answer = try LeasedFile.ask(file)
            guard case .inUse = answer, ContinuousClock.now < deadline else { return answer }
            try check()
            // The system tells nobody when a file is closed; a lease can only be asked for again.
            usleep(10_000)
        }
    }

    /// A process that is being started has its parent's descriptors until it executes its program; so long is waited in
    /// any case.
    private static let shortest: Duration = .milliseconds(250)
}

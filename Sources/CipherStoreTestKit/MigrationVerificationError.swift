public import CipherPlatform
public import CipherSchemaMigration

/// The problems found when the migrations of an app were verified.
public struct MigrationVerificationError: Error, Sendable {
    /// The problems in the migration of one fixture.
    public struct Failure: Sendable {
        /// The fixture, as passed to ``verifyMigrations(from:to:keyProvider:allowing:check:)``.
        public let fixture: URL
        /// The problems found in this fixture.
        public let problems: [Problem]
    }

    /// A problem in the migration of a fixture.
    public enum Problem: Sendable {
        /// The schema differs from a fresh install's.
        case differs(SchemaMismatch)
        /// Opening the migrated database a second time still changed something.
        case unsettled(MigrationReport)
        /// Opening the database or the check threw this error.
        case failed(any Error)
    }

    /// The fixtures with problems, in the order in which they were passed.
    public let failures: [Failure]

    package init(failures: [Failure]) {
        self.failures = failures
    }
}

extension MigrationVerificationError: CustomStringConvertible, LocalizedError {
    /// Every problem, one per line.
    public var description: String {
        failures.flatMap { failure in
            failure.problems.map { "\(failure.fixture.lastPathComponent): \($0)" }
        }.joined(separator: "\n")
    }

    /// Every problem, one per line.
    public var errorDescription: String? { description }
}

extension MigrationVerificationError.Problem: CustomStringConvertible {
    /// The problem, as a sentence.
    public var description: String {
        switch self {
        case .differs(let difference): difference.sentence(unexpected: "not part of a fresh install")
        case .unsettled(let report):
            "when the migrated database was opened again, more steps ran: "
                + report.applied.map(\.title).joined(separator: ", ")
        case .failed(let error): "\(error)"
        }
    }
}

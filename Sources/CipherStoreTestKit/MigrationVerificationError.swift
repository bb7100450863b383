public import CipherSchemaMigration

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What is wrong with the migrations of an app.
public struct MigrationVerificationError: Error, Sendable {
    /// What is wrong with the migration of one fixture.
    public struct Failure: Sendable {
        /// The fixture, as it was given.
        public let fixture: URL
        /// What is wrong.
        public let problems: [Problem]
    }

    /// One thing that is wrong.
    public enum Problem: Sendable {
        /// The schema differs from a fresh install's.
        case differs(SchemaMismatch)
        /// Opening the migrated database again still found something to do.
        case unsettled(MigrationReport)
        /// Opening or checking threw this.
        case failed(any Error)
    }

    /// The fixtures with which something is wrong, in the order in which they were given.
    public let failures: [Failure]

    package init(failures: [Failure]) {
        self.failures = failures
    }
}

extension MigrationVerificationError: CustomStringConvertible, LocalizedError {
    /// Everything that is wrong, a line each.
    public var description: String {
        failures.flatMap { failure in
            failure.problems.map { "\(failure.fixture.lastPathComponent): \($0)" }
        }.joined(separator: "\n")
    }

    /// Everything that is wrong, a line each.
    public var errorDescription: String? { description }
}

extension MigrationVerificationError.Problem: CustomStringConvertible {
    /// What is wrong, as a sentence.
    public var description: String {
        switch self {
        case .differs(let difference): difference.sentence(unexpected: "not in a fresh install")
        case .unsettled(let report):
            "opening it again found something left to do: \(report.applied.map(\.title).joined(separator: ", "))"
        case .failed(let error): "\(error)"
        }
    }
}

import CipherStore
import Support

extension Example {
    /// Prints what the opening of a store did.
    public func tell(_ report: OpenReport) {
        let from = report.migration.from.map { "\($0)" } ?? "none"
        let rows = report.encryption.map { ", \($0.rows) rows" } ?? ""
        print("   \(report.outcome.rawValue)\(rows); schema version \(from) -> \(report.migration.to)")
        for operation in report.migration.applied {
            let place = [operation.table, operation.column].compactMap { $0 }.joined(separator: ".")
            print("   - \(operation.kind.rawValue)\(place.isEmpty ? "" : " \(place)"): \(operation.reason)")
        }
        for warning in report.warnings { print("   warning: \(warning)") }
    }
}

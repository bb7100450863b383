import CipherStore

/// Schema operations as SQL, with their reasons and risks as comments.
enum SchemaText {
    static func print(_ plan: Plan) throws {
        let from = plan.from?.description ?? "none recorded"
        try Output.line("-- schema version: \(from) -> \(plan.to)")
        if plan.isEmpty { try Output.line("-- nothing to do") }
        try print(plan.operations)
        try print(withheld: plan.withheld, notes: plan.notes)
    }

    static func print(_ operations: [Plan.Operation]) throws {
        for operation in operations {
            let subject = [operation.table, operation.column].compactMap { $0 }.joined(separator: ".")
            try Output.line()
            try Output.line("-- \(operation.kind.rawValue)\(subject.isEmpty ? "" : " \(subject)"): \(operation.reason)")
            switch operation.risk {
            case .none: break
            case .removesSchema: try Output.line("-- RISK: removes a part of the schema that holds no row")
            case .losesData: try Output.line("-- RISK: removes rows")
            }
            for statement in operation.sql { try Output.line("\(statement);") }
        }
    }

    static func print(withheld: [Plan.Withheld], notes: [String]) throws {
        if !withheld.isEmpty { try Output.line() }
        for change in withheld {
            let subject = [change.table, change.column].compactMap { $0 }.joined(separator: ".")
            let rows = change.rows.map { " (\(TerminalText.grouped($0)) rows)" } ?? ""
            try Output.line("-- withheld: \(change.kind.rawValue) \(subject)\(rows): \(change.reason)")
        }
        for note in notes { try Output.line("-- note: \(note)") }
    }
}

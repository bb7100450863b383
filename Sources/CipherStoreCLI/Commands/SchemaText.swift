internal import CipherHistory
internal import CipherSchemaMigration

/// Schema operations as SQL, with their reasons and risks as comments.
enum SchemaText {
    static func print(_ plan: Plan) throws {
        let from = plan.from?.description ?? "none recorded"
        try Output.line("-- schema version: \(from) -> \(plan.to)")
        if plan.isEmpty { try Output.line("-- nothing to do") }
        try print(plan.operations)
        if !plan.everyLaunch.isEmpty {
            try Output.line()
            try Output.line("-- at every launch:")
            try print(plan.everyLaunch)
        }
        try print(withheld: plan.withheld, findings: plan.findings, notes: plan.notes)
    }

    static func print(_ operations: [Plan.Operation]) throws {
        for operation in operations {
            try Output.line()
            try Output.line("-- \(operation.title): \(operation.reason)")
            switch operation.risk {
            case .none: break
            case .removesSchema: try Output.line("-- RISK: removes part of the schema, but no values")
            case .losesData: try Output.line("-- RISK: removes or changes values")
            }
            for statement in operation.sql { try Output.line("\(statement);") }
            if let action = operation.action {
                try Output.line("-- \(operation.kind == .copyRows ? "inserts" : "runs") \(action.name)")
            }
            for effect in operation.effects ?? [] { try Output.line("-- \(text(effect))") }
        }
    }

    static func print(withheld: [Plan.Withheld], findings: [Plan.Finding], notes: [String]) throws {
        if !withheld.isEmpty || !findings.isEmpty { try Output.line() }
        for finding in findings { try Output.line("-- \(word(finding.severity)): \(finding.message)") }
        for change in withheld {
            let subject = [change.table, change.column].compactMap { $0 }.joined(separator: ".")
            let unit = change.column == nil ? "row" : "value"
            let rows = change.rows.map { " (\(TerminalText.grouped($0)) \(unit)\($0 == 1 ? "" : "s"))" } ?? ""
            try Output.line("-- withheld: \(change.kind.rawValue) \(subject)\(rows): \(change.reason)")
        }
        for note in notes { try Output.line("-- note: \(note)") }
    }

    /// Returns the effect on a table as text, for example `chat: 175 rows, then 170; draft: 3 NULLs, then 15`.
    private static func text(_ effect: Plan.TableEffect) -> String {
        func change(_ before: Int?, _ after: Int?, _ unit: String) -> String {
            func number(_ count: Int) -> String { "\(TerminalText.grouped(count)) \(unit)\(count == 1 ? "" : "s")" }
            switch (before, after) {
            case (let before?, let after?):
                return before == after ? number(before) : "\(number(before)), then \(TerminalText.grouped(after))"
            case (let before?, nil): return "\(number(before)), then removed"
            case (nil, let after?): return "new, with \(number(after))"
            case (nil, nil): return "created and removed"
            }
        }
        var parts = [change(effect.rowsBefore, effect.rowsAfter, "row")]
        if let name = effect.renamedTo { parts.append("renamed to \(name)") }
        parts += effect.columns.map { "\($0.name): \(change($0.nullsBefore, $0.nullsAfter, "NULL"))" }
        parts += effect.removedIndexes.map { "index \($0): removed" } + effect.addedIndexes.map { "index \($0): new" }
        return "\(effect.table): \(parts.joined(separator: "; "))"
    }

    private static func word(_ severity: Plan.Finding.Severity) -> String {
        switch severity {
        case .note: "finding"
        case .warning: "warning"
        case .removesSchema, .losesData: "LOSS"
        case .impossible: "IMPOSSIBLE"
        }
    }
}

internal import CipherErrors

/// Determines which statements of a step have already run in a system that ran them one by one without a transaction.
struct HalfDoneStep {
    let name: String
    let passages: [StepSchemas.Passage]
    let path: String
    /// A closure that returns whether SQLite accepts a statement in the current database.
    let canRun: (PlacedStatement) throws -> Bool
    let evidence: InsertEvidence
    /// The statements that may run again, whether or not they have run.
    let repeatable: Set<String>
    /// The statements of earlier steps; an object that they also create is not evidence of this step.
    let earlier: Set<String>

    /// The result for a step's statements.
    struct Answer {
        /// The reasons why statements are left out, by index.
        var skipped: [Int: String] = [:]
    }

    /// Returns which statements have run.
    ///
    /// - Throws: ``StoreError`` if this is unclear.
    func answer(for found: SchemaSnapshot) throws -> Answer {
        let isAdditive = passages.allSatisfy(\.change.isAdditive)
        let done = isAdditive ? try additive(found) : try prefix(found)
        guard let last = done.max() else { return try begunWithRows() }
        let isMissing = { (passage: StepSchemas.Passage) in
            !passage.change.added.isEmpty && passage.change.added.allSatisfy { !found.has($0) }
        }
        var answer = Answer()
        for index in done { answer.skipped[index] = "the objects that the statement creates already exist" }
        // A statement that also removes a table has renamed it.
        let additions = done.map { passages[$0].change }.filter { !$0.removed.contains { $0.kind == .table } }
        let made = Set(additions.flatMap(\.added).filter { $0.kind == .table }.map(\.name))
        var proof = last
        for (index, passage) in passages.enumerated().reversed() where passage.traits.writesRows {
            // As long as nothing is removed from the schema, a statement that cannot run because something is missing
            // could not run before either.
            let mayLack = index > last || isAdditive && passages[..<index].contains(where: isMissing)
            if mayLack, try !canRun(passage.statement) { continue }
            if index < proof {
                answer.skipped[index] =
                    "the statement has already run or failed, because \(passages[proof].statement.place), which "
                    + "follows it, has taken effect"
                continue
            }
            guard !mayRepeat(passage) else { continue }
            switch try evidence.answer(for: passage, made: made) {
            case .ran:
                answer.skipped[index] = "the rows that the statement inserts already exist"
                // In a table that existed before the step, the rows may not come from this statement.
                if !passage.traits.inserts.isDisjoint(with: made) { proof = index }
            case .notRun: continue
            case .unclear, .unknown: throw unclear(passage)
            }
        }
        return answer
    }

    /// Handles a step with no effect on the schema, whose first rows may still exist.
    private func begunWithRows() throws -> Answer {
        var answer = Answer()
        var open: StepSchemas.Passage?
        for (index, passage) in passages.enumerated()
        where passage.traits.writesRows && !mayRepeat(passage) {
            guard try !earlier.contains(passage.statement.sql) && canRun(passage.statement) else { continue }
            switch try evidence.answer(for: passage) {
            case .ran: answer.skipped[index] = "the rows that the statement inserts already exist"
            case .notRun: continue
            case .unclear: throw unclear(passage)
            case .unknown: open = open ?? passage
            }
        }
        // If a row shows that the step was started, it may have continued.
        if !answer.skipped.isEmpty, let open { throw unclear(open) }
        return answer
    }

    private func mayRepeat(_ passage: StepSchemas.Passage) -> Bool {
        passage.mayRepeat || repeatable.contains(passage.statement.place)
    }

    private func unclear(_ passage: StepSchemas.Passage) -> StoreError {
        let isInsert = passage.traits.deletes.isEmpty && passage.traits.updates.isEmpty
        return StoreError(
            .migration, path: path,
            "an earlier run of \(name) did not finish, and it is unknown whether "
                + "\(passage.statement.place) has run: running it again might "
                + (isInsert ? "insert rows twice" : "change rows twice"),
            advice: (isInsert ? "use INSERT OR IGNORE, or " : "")
                + "make the statement safe to repeat and list it in updates.repeatable, or repair the database by hand",
            changed: .nothing)
    }

    /// Determines statement by statement which of the statements that only add have run.
    private func additive(_ found: SchemaSnapshot) throws -> Set<Int> {
        var done: Set<Int> = []
        for (index, passage) in passages.enumerated() {
            let added = passage.change.added
            let there = added.filter(found.has)
            guard !there.isEmpty else { continue }
            if let absent = added.subtracting(there).min(by: { $0.description < $1.description }) {
                throw differs(passage, "the \(absent) is missing")
            }
            if let other = there.first(where: { found.definitions[$0] != passage.change.after.definitions[$0] }) {
                throw differs(passage, "the \(other) has a different definition")
            }
            done.insert(index)
        }
        return done
    }

    /// Determines how many of the first statements of a step have run; a step that also removes or renames runs from
    /// its beginning.
    private func prefix(_ found: SchemaSnapshot) throws -> Set<Int> {
        guard let first = passages.first else { return [] }
        let moments = [first.change.before] + passages.map(\.change.after)
        let touched = passages.reduce(into: Set<SchemaSnapshot.Item>()) { $0.formUnion($1.change.touched) }
        // Only items that the step itself defines several times are recognized by their definition.
        let redefined = touched.filter { item in Set(moments.compactMap { $0.definitions[item] }).count > 1 }
        let count = moments.firstIndex { moment in
            touched.allSatisfy { item in
                guard moment.has(item) == found.has(item) else { return false }
                guard redefined.contains(item) else { return true }
                // A definition that occurs in no intermediate state was already different before the step, and stayed.
                let isKnown = moments.contains { $0.definitions[item] == found.definitions[item] }
                return moment.definitions[item] == (isKnown ? found : first.change.before).definitions[item]
            }
        }
        guard let count else {
            throw StoreError.halfDone(
                path,
                "only part of \(name) has run, but the database does not match any intermediate state of the step")
        }
        return Set((0..<count).filter { passages[$0].traits.isDefinition })
    }

    private func differs(_ passage: StepSchemas.Passage, _ detail: String) -> StoreError {
        .halfDone(
            path, "some objects created by \(passage.statement.place) already exist, but \(detail)")
    }
}

/// What the steps do to an empty database, statement by statement: the schema that every version should have.
///
/// Known up to the first stage in Swift.
struct StepCourse {
    /// A statement with what it did.
    struct Passage {
        let statement: StepStage.Statement
        let traits: Rehearsal.Traits
        let change: SchemaChange

        /// Whether running it again could make rows twice.
        var insertsBlindly: Bool {
            guard !traits.isDefinition, !traits.inserts.isEmpty else { return false }
            let words = statement.sql.prefix(64).uppercased().split(whereSeparator: \.isWhitespace)
            return
                !(words.first == "REPLACE"
                || words.prefix(2) == ["INSERT", "OR"] && words.count > 2 && ["IGNORE", "REPLACE"].contains(words[2]))
        }
    }

    /// The stages before the first one in Swift.
    let stages: [[Passage]]

    init(_ all: [StepStage], in rehearsal: Rehearsal) throws {
        var stages: [[Passage]] = []
        var schema = SchemaSnapshot()
        for stage in all {
            guard let statements = stage.statements else { break }
            stages.append(
                try statements.map { statement in
                    let traits = try rehearsal.run(statement)
                    guard traits.isDefinition else {
                        return Passage(statement: statement, traits: traits, change: SchemaChange(none: schema))
                    }
                    let after = try rehearsal.snapshot(after: schema)
                    defer { schema = after }
                    return Passage(
                        statement: statement, traits: traits, change: SchemaChange(before: schema, after: after))
                })
        }
        self.stages = stages
    }
}

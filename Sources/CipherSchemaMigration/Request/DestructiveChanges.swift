/// How to treat changes that would lose tables, columns or values.
public enum DestructiveChanges: String, Sendable, CaseIterable {
    /// The changes are made.
    case allow
    /// The changes are not made but reported, and all other changes are made. A removed constraint is only reported.
    ///
    /// The losses of an app's own SQL or Swift step cannot be withheld, so the migration is refused, as with `refuse`,
    /// unless `destructiveSteps` of the configuration names the step.
    case withhold
    /// The migration is refused, and nothing is changed. A migration that would remove a constraint is refused, too.
    case refuse
}

/// How to treat changes that would lose tables, columns or values.
public enum DestructiveChanges: String, Sendable, CaseIterable {
    /// They are made.
    case allow
    /// They are left undone and reported, and everything else is done.
    ///
    /// What an app's own SQL or Swift step would lose cannot be left undone, so the migration is refused, as with
    /// `refuse`, unless `destructiveSteps` of the configuration names the step.
    case withhold
    /// The migration is refused, and nothing is changed.
    case refuse
}

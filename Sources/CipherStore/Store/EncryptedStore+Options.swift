extension EncryptedStore {
    /// The timeouts of a store and the number of its connections.
    public struct Options: Sendable {
        /// The number of readers that may run at the same time; each has a connection, opened when it is first needed.
        public var maximumReaders = 4
        /// How long opening, and then each statement, waits for other connections to the same file.
        public var busyTimeout: Duration = .seconds(5)
        /// How long ``EncryptedStore/open(_:directory:keyProvider:options:progress:)`` waits for another
        /// upgrade of a database in the same directory, in this process or another.
        public var upgradeTimeout: Duration = .seconds(120)
        /// How long opening waits for each response of the key provider, which may have to prompt the user.
        public var keyTimeout: Duration = .seconds(120)

        /// Called with each event of the store, for a log.
        ///
        /// The events include opening and its warnings, checkpoints, long waits, suspension and closing. The closure is
        /// called on the thread of the event, which waits for it; it must not call the store.
        public var events: (@Sendable (StoreEvent) -> Void)?

        /// Creates the default options.
        public init() {}
    }
}

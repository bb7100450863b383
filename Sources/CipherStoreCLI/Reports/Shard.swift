/// The part of a fleet's files that one run works on.
///
/// A file belongs to the shard that is the first eight bytes of the SHA-256 of its relative path, as a number, modulo
/// the count of shards. Thus a shard's files are the same on every machine and in every run, and no list is needed.
struct Shard: Sendable, Equatable {
    /// The number of this shard, from 0 to ``count`` minus 1.
    let index: Int
    let count: Int
    /// The option or environment variables that specified the shard; `nil` if there are none and the run covers all
    /// files.
    let origin: String?

    static let whole = Shard(index: 0, count: 1, origin: nil)

    /// The maximum number of shards of a fleet.
    static let most = 1_000_000

    private init(index: Int, count: Int, origin: String?) {
        (self.index, self.count, self.origin) = (index, count, origin)
    }

    /// Creates a shard from its number and the count of shards.
    ///
    /// - Throws: ``CommandFailure`` with the code `usage` if there is no shard of this number.
    init(index: Int, of count: Int, origin: String) throws {
        guard (1...Self.most).contains(count), (0..<count).contains(index) else {
            throw CommandFailure.usage(
                "\(origin): there is no shard \(index) of \(count)",
                advice: "a shard number must be 0 or greater, and less than the number of shards; there can be at "
                    + "most \(Self.most) shards")
        }
        self.init(index: index, count: count, origin: origin)
    }

    /// Returns whether a file belongs to this shard, by its path relative to the folder.
    func owns(_ path: String) -> Bool {
        count == 1 || Int(PathDigest(path).high % UInt64(count)) == index
    }
}

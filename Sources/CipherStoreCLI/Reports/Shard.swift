/// The part of a fleet's files that one run works on.
///
/// A file belongs to the shard that is the first eight bytes of the SHA-256 of its relative path, as a number, modulo the
/// count of shards. So a shard's files are the same on every machine and in every run, and no list is needed.
struct Shard: Sendable, Equatable {
    /// From 0 to ``count`` less 1.
    let index: Int
    let count: Int
    /// What said so: an option or variables of the environment; `nil` where nothing did, and the run is the whole.
    let origin: String?

    static let whole = Shard(index: 0, count: 1, origin: nil)

    /// The most shards that a fleet may have.
    static let most = 1_000_000

    private init(index: Int, count: Int, origin: String?) {
        (self.index, self.count, self.origin) = (index, count, origin)
    }

    /// A shard with a number and a count.
    ///
    /// - Throws: ``CommandFailure`` with `usage` where the two do not fit together.
    init(index: Int, of count: Int, origin: String) throws {
        guard (1...Self.most).contains(count), (0..<count).contains(index) else {
            throw CommandFailure.usage(
                "\(origin): there is no shard \(index) of \(count)",
                advice: "shards are numbered from 0 to the count less 1, and there are \(Self.most) at most")
        }
        self.init(index: index, count: count, origin: origin)
    }

    /// Whether a file is this shard's, by its path relative to the folder.
    func owns(_ path: String) -> Bool {
        count == 1 || Int(PathDigest(path).high % UInt64(count)) == index
    }
}

import Foundation

/// Files without a name that this process has open.
public enum NamelessFiles {
    /// Returns the size of the largest one in a folder; 0 if there is none, or if the system cannot tell.
    public static func largest(in folder: TemporaryFolder) -> Int {
        let folder = folder.url.resolvingSymlinksInPath().path(percentEncoded: false)
        let files = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return files.map { name in
            var status = stat()
            guard let descriptor = Int32(name),
                let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)"),
                path.hasPrefix(folder), path.hasSuffix("(deleted)"), fstat(descriptor, &status) == 0
            else { return 0 }
            return Int(status.st_size)
        }.max() ?? 0
    }
}

// Unchecked, but thread-safe: `largest` is used only under `lock`.
/// The largest of several numbers, from any threads.
public final class Largest: @unchecked Sendable {
    private let lock = NSLock()
    private var largest = 0

    /// Creates the number 0.
    public init() {}

    /// Takes another number into account.
    public func note(_ number: Int) { lock.withLock { largest = max(largest, number) } }
    /// The largest number so far.
    public var value: Int { lock.withLock { largest } }
}

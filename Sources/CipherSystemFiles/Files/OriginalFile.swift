package import CipherErrors
internal import CipherPlatform

/// One file, identified by its device and inode, whatever its name.
package struct OriginalFile {
    let path: String
    private let identity: FileIdentity

    package init(_ path: String, _ status: FileSystem.Status) {
        self.path = path
        identity = status.identity
    }

    /// Returns whether a descriptor belongs to this file.
    func isAt(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && matches(status)
    }

    private func matches(_ status: stat) -> Bool {
        FileIdentity(status) == identity
    }

    /// Returns whether this process has the file open, through any library.
    ///
    /// This method does not open the file itself.
    package func isOpenHere() -> Bool { Self.descriptors().contains(where: isAt) }

    /// Returns how many descriptors of these files this process has.
    package static func countDescriptors(of files: [OriginalFile]) -> Int {
        let identities = Set(files.map(\.identity))
        return descriptors().count { descriptor in
            var status = stat()
            return fstat(descriptor, &status) == 0 && identities.contains(FileIdentity(status))
        }
    }

    /// Returns the numbers of this process's descriptors, and possibly of others that are not open.
    private static func descriptors() -> [Int32] {
        #if os(Linux) && !CIPHERSTORE_PORTABLE
            if let names = try? FileSystem.names(in: "/proc/self/fd") { return names.compactMap { Int32($0) } }
        #endif
        return Array(0..<getdtablesize())
    }

    /// Returns the other processes that have the file open, as far as this user is allowed to see them.
    package func otherUsers() -> FileUsers {
        #if os(Linux) && !CIPHERSTORE_PORTABLE
            let processes = ((try? FileSystem.names(in: "/proc")) ?? []).filter {
                Int32($0) != nil && Int32($0) != getpid()
            }
            return .others(processes.filter(hasOpen).map { "\($0) (\(Self.command(of: $0)))" })
        #else
            return .others([])
        #endif
    }

    #if os(Linux) && !CIPHERSTORE_PORTABLE
        private func hasOpen(_ process: String) -> Bool {
            let folder = "/proc/\(process)/fd"
            return ((try? FileSystem.names(in: folder)) ?? []).contains { name in
                var status = stat()
                return stat("\(folder)/\(name)", &status) == 0 && matches(status)
            }
        }

        /// Returns the name of a process's program, without characters that a terminal could interpret as commands.
        private static func command(of process: String) -> String {
            let name = (try? FileSystem.readText("/proc/\(process)/comm", limit: 64)) ?? nil
            let printable = (name ?? "").unicodeScalars.filter { $0.isASCII && $0.value >= 0x20 && $0.value != 0x7f }
            return String(String.UnicodeScalarView(printable))
        }
    #endif

    /// Properties of the file that every write to it changes.
    package struct State: Equatable {
        /// The length in bytes of the longest page.
        ///
        /// The first page holds the change counter, which an encrypted file stores with a new initialization vector.
        package static let length = 65_536

        private let start: [UInt8]
        /// The number of bytes that the longest page, or the whole file if it is shorter, takes up.
        package var startLength: Int { start.count }
        package let size: Int64
        private let changed: [Int]

        init(_ status: stat, start: [UInt8]) {
            self.start = start
            size = Int64(status.st_size)
            changed = [Int(status.modified.tv_sec), Int(status.modified.tv_nsec)]
        }
    }

    /// Returns the state of the file, found by its name.
    ///
    /// - Parameter start: The first ``State/length`` bytes of the file.
    package func state(start: [UInt8]) throws -> State {
        guard let status = statusByName else { throw replaced() }
        return State(status, start: start)
    }

    /// Whether the file's name still leads to this file.
    package var hasItsName: Bool { statusByName != nil }

    private var statusByName: stat? {
        var status = stat()
        return path.withSystemPath { lstat($0, &status) } == 0 && matches(status) ? status : nil
    }

    package func replaced() -> StoreError {
        .busy(path, "another program replaced the file during the conversion", retry: .afterEndingProgram)
    }
}

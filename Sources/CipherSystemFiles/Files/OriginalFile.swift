package import CipherErrors

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// One file, whatever name it has: its device and inode.
package struct OriginalFile {
    let path: String
    private let identity: FileIdentity

    package init(_ path: String, _ status: FileSystem.Status) {
        self.path = path
        identity = status.identity
    }

    /// Whether a descriptor is this file's.
    func isAt(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && matches(status)
    }

    private func matches(_ status: stat) -> Bool {
        FileIdentity(status) == identity
    }

    /// Whether this process has the file open, by whichever library.
    ///
    /// The file itself is not opened for that.
    package func isOpenHere() -> Bool {
        #if os(Linux)
            if let names = try? FileSystem.names(in: "/proc/self/fd") {
                return names.contains { Int32($0).map(isAt) == true }
            }
        #endif
        return (0..<getdtablesize()).contains(where: isAt)
    }

    /// Which other processes have the file open, as far as this user may see.
    package func otherUsers() -> FileUsers {
        #if os(Linux)
            let processes = ((try? FileSystem.names(in: "/proc")) ?? []).filter {
                Int32($0) != nil && Int32($0) != getpid()
            }
            return .others(processes.filter(hasOpen).map { "\($0) (\(Self.command(of: $0)))" })
        #else
            return .others([])
        #endif
    }

    #if os(Linux)
        private func hasOpen(_ process: String) -> Bool {
            let folder = "/proc/\(process)/fd"
            return ((try? FileSystem.names(in: folder)) ?? []).contains { name in
                var status = stat()
                return stat("\(folder)/\(name)", &status) == 0 && matches(status)
            }
        }

        /// The name of a process's program, of which nothing is taken over that a terminal could obey.
        private static func command(of process: String) -> String {
            let name = (try? FileSystem.readText("/proc/\(process)/comm", limit: 64)) ?? nil
            let printable = (name ?? "").unicodeScalars.filter { $0.isASCII && $0.value >= 0x20 && $0.value != 0x7f }
            return String(String.UnicodeScalarView(printable))
        }
    #endif

    /// What a writer of the file cannot help changing.
    package struct State: Equatable {
        /// As long as the longest page: the first one holds the change counter, in an encrypted file under a new
        /// initialization vector.
        package static let length = 65_536

        private let start: [UInt8]
        private let size: Int64
        private let changed: [Int]

        init(_ status: stat, start: [UInt8]) {
            self.start = start
            size = Int64(status.st_size)
            #if canImport(Darwin)
                let time = status.st_mtimespec
            #else
                let time = status.st_mtim
            #endif
            changed = [Int(time.tv_sec), Int(time.tv_nsec)]
        }
    }

    /// The state of the file by its name.
    ///
    /// - Parameter start: Its first ``State/length`` bytes.
    package func state(start: [UInt8]) throws -> State {
        guard let status = statusByName else { throw replaced() }
        return State(status, start: start)
    }

    /// Whether its name still leads to it.
    package var hasItsName: Bool { statusByName != nil }

    private var statusByName: stat? {
        var status = stat()
        return path.withSystemPath { lstat($0, &status) } == 0 && matches(status) ? status : nil
    }

    package func replaced() -> StoreError {
        .busy(path, "another program replaced the file during the upgrade", retry: .afterEndingProgram)
    }
}

internal import CCipherSystem
internal import CipherErrors

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Files that are mounted by themselves, as containers are given single files: no rename can replace one.
package enum MountPoint {
    /// Whether a file is one.
    ///
    /// On Linux the system tells of a path, or of older ones the table of mounts: in an overlay the files of one folder may be
    /// of several devices.
    package static func isOne(_ path: String, _ status: FileSystem.Status, in folder: Folder) throws -> Bool {
        #if os(Linux)
            let answer = path.withSystemPath { cs_is_mount_point($0) }
            guard answer < 0 else { return answer == 1 }
            guard let table = try? SmallFile(path: "/proc/self/mountinfo").bytes(limit: 1 << 20) else { return false }
            return points(table).contains(SystemPath.bytes(path))
        #else
            let surrounding = try FileSystem.status(ofDescriptor: folder.descriptor, folder.path)
            return surrounding.identity.device != status.identity.device
        #endif
    }

    /// The places of a table of mounts.
    ///
    /// Source: proc_pid_mountinfo(5): the fifth field, in which blanks, tabs, line ends and backslashes are octal.
    package static func points(_ table: [UInt8]) -> [[UInt8]] {
        table.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            return fields.count > 4 ? unescaped(fields[4]) : nil
        }
    }

    private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = field
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3,
                let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
            {
                result.append(code)
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}

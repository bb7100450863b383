internal import CCipherSystem
internal import CipherErrors
internal import CipherPlatform

/// Single files that are mount points, as containers use them: a rename cannot replace such a file.
package enum MountPoint {
    /// Returns whether a file is a mount point.
    ///
    /// On Linux, the kernel reports this for a path; on older kernels, the mount table shows it. Device numbers are of
    /// no use, because in an overlay, the files of one folder may be on several devices.
    package static func isOne(_ path: String, _ status: FileSystem.Status, in folder: Folder) throws -> Bool {
        #if os(Linux) && !CIPHERSTORE_PORTABLE
            let answer = path.withSystemPath { cs_is_mount_point($0) }
            guard answer < 0 else { return answer == 1 }
            guard let table = try? SmallFile(path: "/proc/self/mountinfo").bytes(limit: 1 << 20) else { return false }
            return points(table).contains(SystemPath.bytes(path))
        #else
            let surrounding = try FileSystem.status(ofDescriptor: folder.descriptor, folder.path)
            return surrounding.identity.device != status.identity.device
        #endif
    }

    /// Returns the mount points in a mount table.
    ///
    /// Source: proc_pid_mountinfo(5): the fifth field, in which spaces, tabs, newlines and backslashes are octal
    /// escapes.
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

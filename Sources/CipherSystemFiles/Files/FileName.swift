/// The rules for names of files in a folder that is specified elsewhere.
package enum FileName {
    /// Returns the reason why `name` is not a bare file name; `nil` if it is one.
    package static func fault(of name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.contains(0) { return "contains a NUL character" }
        if name.utf8.contains(UInt8(ascii: "/")) { return "contains a slash" }
        if name == "." || name == ".." { return "is the name of a folder" }
        return nil
    }

    /// Returns the path of a file in the same folder as another file.
    package static func sibling(_ name: String, of path: String) -> String {
        inFolder(FileSystem.split(path).folder, name)
    }

    /// Returns the path of a file in a folder.
    package static func inFolder(_ folder: String, _ name: String) -> String {
        folder == "/" ? "/\(name)" : "\(folder)/\(name)"
    }
}

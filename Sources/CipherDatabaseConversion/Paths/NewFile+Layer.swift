internal import CipherSQLite
internal import CipherSystemFiles

extension NewFile {
    /// The content, for reading while this file exists.
    var content: DescriptorFile { DescriptorFile(descriptor: descriptor, path: path) }

    /// Returns a file layer through which SQLite opens this file.
    func layer() throws -> FileLayer {
        // The closure keeps this file alive.
        try FileLayer(content) { [self] in try? folder.createNameless() }
    }
}

internal import CipherSQLite
internal import CipherSystemFiles

extension NewFile {
    /// The content, for as long as this file is kept.
    var content: DescriptorFile { DescriptorFile(descriptor: descriptor, path: path) }

    /// A file layer in which SQLite finds this file.
    func layer() throws -> FileLayer {
        // Holds on to the file.
        try FileLayer(content) { [self] in try? folder.createNameless() }
    }
}

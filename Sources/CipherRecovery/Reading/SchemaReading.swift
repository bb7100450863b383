internal import CipherCatalog
internal import CipherSQLite
package import CipherSQLiteFormat

/// The part of a damaged database's schema that its pages still hold.
package struct SchemaReading {
    package private(set) var entries: [SchemaText] = []
    /// Whether pages of the schema are missing or damaged.
    package private(set) var isDamaged = false
    package private(set) var encoding: TextEncoding

    /// Reads the schema table and, if some of its pages are missing, the pages that look like its leaves.
    ///
    /// - Parameter encoding: The text encoding, if the header contains it.
    /// - Throws: Any error thrown by the source.
    package init(in source: some PageSource, encoding known: TextEncoding?) throws {
        encoding = known ?? .utf8
        let owners = PageOwners(source)
        let map = try Self.map(source, owners)
        isDamaged = !map.isWhole
        var found: [SchemaEntry] = []
        var payloads = PayloadReader(source, owners)
        for place in map.pages {
            guard let page = try HeldPage(place.page, in: source), let content = PageContent(page, source.geometry)
            else { continue }
            defer { content.keep() }
            for cell in content.cells {
                guard let entry = try Self.entry(cell, &payloads) else {
                    isDamaged = true
                    continue
                }
                found.append(entry)
            }
        }
        if !map.gaps.isEmpty { found += try Self.orphans(source, owners, &payloads) }
        if known == nil, let type = found.first?.type { encoding = Self.encoding(of: type) }
        var roots: [[UInt8]: UInt32?] = [:]
        for entry in found.map({ SchemaText($0, encoding) }) {
            if let root = roots.updateValue(entry.root, forKey: entry.key) {
                // Two b-trees have the same name, so the real name of one of them is not known.
                if root != entry.root { isDamaged = true }
            } else {
                entries.append(entry)
            }
        }
    }

    /// Replaces definitions that are lost or cannot be read with those of a healthy database that has the same schema.
    ///
    /// - Parameter rejected: Entries that SQLite does not accept.
    package mutating func add(template: [SchemaText], for rejected: [SchemaForms.Rejected]) {
        let given = Dictionary(template.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        let unread = Set(rejected.map(\.entry.key))
        entries = entries.map { unread.contains($0.key) ? given[$0.key]?.given(root: $0.root) ?? $0 : $0 }
        // A rejected entry without a counterpart in the template may have a damaged name.
        guard isDamaged || unread.contains(where: { given[$0] == nil }) else { return }
        let known = Set(entries.map(\.key))
        entries += template.filter { !known.contains($0.key) }.map { $0.given(root: $0.root == 0 ? 0 : nil) }
    }

    static func map(_ source: some PageSource, _ owners: PageOwners) throws -> TreeMap {
        try TreeMap(root: 1, isTable: true, in: source, owners) { content in
            !content.tree.kind.isLeaf || content.cells.contains { RecordReader.types($0)?.count ?? 5 == 5 }
        }
    }

    private static func entry<Source>(_ cell: TreeCell, _ payloads: inout PayloadReader<Source>) throws -> SchemaEntry?
    {
        do {
            return try payloads.read(cell) { try SchemaEntry(cell, $0.bytes) }
        } catch is PayloadReader<Source>.Loss {
            return nil
        } catch is DamagedPage {
            return nil
        }
    }

    /// Returns the entries on leaves that no page leads to.
    private static func orphans<Source>(
        _ source: Source, _ owners: PageOwners, _ payloads: inout PayloadReader<Source>
    ) throws -> [SchemaEntry] {
        var found: [SchemaEntry] = []
        guard source.pageCount > 1 else { return [] }
        for number in 2...source.pageCount where owners.isUnclaimed(number) {
            guard let page = try HeldPage(number, in: source), let content = PageContent(page, source.geometry),
                content.tree.kind == .tableLeaf, !content.cells.isEmpty,
                content.cells.allSatisfy({ RecordReader.types($0)?.count ?? 5 == 5 })
            else { continue }
            defer { content.keep() }
            var entries: [SchemaEntry] = []
            for cell in content.cells {
                if let entry = try entry(cell, &payloads), isPlausible(entry, source) { entries.append(entry) }
            }
            if entries.count == content.cells.count { found += entries }
        }
        return found
    }

    private static func isPlausible(_ entry: SchemaEntry, _ source: some PageSource) -> Bool {
        let text = SchemaText(entry, encoding(of: entry.type))
        guard ["table", "index", "view", "trigger"].contains(text.type), entry.rootPage <= source.pageCount else {
            return false
        }
        guard text.sql != nil else { return text.type == "index" }
        return SchemaEntryCheck.isShape(of: text.text, text.type, hasRoot: entry.rootPage > 0)
    }

    /// Returns the encoding of text that consists of ASCII characters.
    private static func encoding(of text: [UInt8]) -> TextEncoding {
        guard text.count > 1, text.count % 2 == 0 else { return .utf8 }
        return text[1] == 0 ? .utf16LittleEndian : text[0] == 0 ? .utf16BigEndian : .utf8
    }
}

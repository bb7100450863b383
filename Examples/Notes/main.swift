// Uses the app, and checks that it reads what it wrote.

import Foundation

struct Unexpected: Error { let what: String }

func expect(_ condition: Bool, _ what: String) throws {
    guard condition else { throw Unexpected(what: what) }
}

func id(_ id: Int64?) throws -> Int64 {
    guard let id else { throw Unexpected(what: "an id") }
    return id
}

let folder = FileManager.default.temporaryDirectory.appending(path: "notes-\(UUID())")
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let app = try await Notes(in: folder)
let home = try await app.add(Notebook(name: "home"))
let homeID = try id(home.id)
var bread = try await app.add(Note(notebookId: homeID, title: "Shopping", body: "buy bread", tags: ["town"]))
let call = try await app.add(Note(notebookId: homeID, title: "Calls", body: "call Ana back"))
let callID = try id(call.id)

var observed: [[String]] = []
for try await titles in app.titles() {
    observed.append(titles)
    if observed.count == 2 { break }
    bread.title = "Town"
    try await app.update(bread)
}
try expect(observed == [["Calls", "Shopping"], ["Calls", "Town"]], "the observation: \(observed)")

var changed = call
changed.body = "call Ana and Bo"
try await app.merge([changed, Note(id: 9, notebookId: homeID, title: "Ideas", body: "a bench in the garden")])
try expect(try await app.notes([callID, 9]).map(\.body) == [changed.body, "a bench in the garden"], "IN")
try expect(try await app.search("ana \"b").map(\.id) == [call.id], "the search")
try await app.delete(changed)
try expect(try await app.entries().map(\.title) == ["Ideas", "Town"], "the join")
try expect(try await app.entries().first?.notebook == home, "the notebook")
try await app.backUp(to: folder.appending(path: "backup.db"))
try await app.export(to: folder.appending(path: "notes.json"))
let exported = try Data(contentsOf: folder.appending(path: "notes.json"))
try expect(try JSONDecoder().decode([Note].self, from: exported) == (try await app.all()), "the export")
print("notes: \(try await app.all().map(\.title))")
try FileManager.default.removeItem(at: folder)

import CipherSQLite

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

// Holds a lock as another process would, says "ready", and ends at the end of its input.
//
// Usage: LockHolder write DATABASE | idle DATABASE | folder FOLDER
//
// The idle one has read the database and holds it open without a lock; for each line of its input it tries to write a
// row into the table t and says "written" or "refused".

let arguments = CommandLine.arguments
guard arguments.count == 3 else { exit(64) }
var connection: Connection?
switch arguments[1] {
case "write":
    connection = try Connection(path: arguments[2], mode: .readWrite)
    try connection?.execute("BEGIN IMMEDIATE")
case "idle":
    connection = try Connection(path: arguments[2], mode: .readWrite, busyTimeout: 0)
    _ = try connection?.value(Int.self, "SELECT count(*) FROM t")
case "folder":
    let descriptor = open(arguments[2], O_RDONLY | O_DIRECTORY)
    guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0 else { exit(74) }
default:
    exit(64)
}
print("ready")
fflush(nil)
while readLine() != nil {
    guard arguments[1] == "idle" else { continue }
    do {
        try connection?.execute("INSERT INTO t(a) VALUES ('late')")
        print("written")
    } catch is DatabaseError {
        print("refused")
    }
    fflush(nil)
}
connection?.close()

import CipherPlatform
internal import CipherSQLite
import CipherTestSupport

// Holds a lock as another process would, prints "ready", and ends at the end of its input.
//
// Usage: CipherLockHolder write DATABASE | read DATABASE | folder FOLDER | sql DATABASE [KEYBYTE]
//
// With `read`, the program holds the lock of a reader without reading anything, so it plays back no journal.
//
// With `sql`, the program opens the database, under a raw key of that byte if one is given, and runs each line of its
// input. For SQL, it prints "ok" and the first column of the rows, or "error" and SQLite's code. For "half" and a
// query, it reads one row and keeps the cursor.

let arguments = CommandLine.arguments
guard arguments.count >= 3 else { exit(64) }
var connection: Connection?
var lines: SQLLines?
switch arguments[1] {
case "write":
    connection = try Connection(path: arguments[2], mode: .readWrite)
    try connection?.execute("BEGIN IMMEDIATE")
case "read":
    // SQLite's readers lock these bytes: SQLite, "File Locking And Concurrency In SQLite Version 3", and `os.h`.
    let descriptor = open(arguments[2], O_RDONLY)
    var lock = flock()
    (lock.l_type, lock.l_whence) = (Int16(F_RDLCK), Int16(SEEK_SET))
    (lock.l_start, lock.l_len) = (0x4000_0002, 510)
    guard descriptor >= 0, fcntl(descriptor, F_SETLK, &lock) == 0 else { exit(74) }
case "folder":
    let descriptor = open(arguments[2], O_RDONLY | O_DIRECTORY)
    guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0 else { exit(74) }
case "sql":
    lines = try SQLLines(arguments[2], keyByte: arguments.dropFirst(3).first.flatMap { UInt8($0) })
default:
    exit(64)
}
print("ready")
fflush(nil)
while let line = readLine() {
    guard let answer = lines?.answer(line) else { continue }
    print(answer)
    fflush(nil)
}
lines?.close()
connection?.close()

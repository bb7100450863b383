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
// Usage: LockHolder write DATABASE | folder FOLDER

let arguments = CommandLine.arguments
guard arguments.count == 3 else { exit(64) }
var connection: Connection?
switch arguments[1] {
case "write":
    connection = try Connection(path: arguments[2], mode: .readWrite)
    try connection?.execute("BEGIN IMMEDIATE")
case "folder":
    let descriptor = open(arguments[2], O_RDONLY | O_DIRECTORY)
    guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0 else { exit(74) }
default:
    exit(64)
}
print("ready")
fflush(nil)
while readLine() != nil {}
connection?.close()

import Foundation

/// The executable CipherCrashSubject, whose operations are tried.
struct Subject: Sendable {
    let path: String
    /// Environment variables in addition to this program's.
    let environment: [String: String]

    /// Copies the executable beside this program, so that a concurrent build does not change it.
    ///
    /// - Parameter isRepeatable: Whether its random numbers and its clock are fixed, so that equal runs leave equal
    ///   bytes.
    init(in session: Session, isRepeatable: Bool) throws {
        let program = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let built = program.deletingLastPathComponent().appending(path: "CipherCrashSubject").path(
            percentEncoded: false)
        path = session.folder + "/subject"
        guard (try? FileManager.default.copyItem(atPath: built, toPath: path)) != nil else {
            throw TrialError(detail: "\(built) cannot be copied; build the product CipherCrashSubject")
        }
        environment = isRepeatable ? ["REPEATABLE": "yes"].merging(Self.backtraces) { $1 } : Self.backtraces
    }

    /// A statically linked program does not find Swift's backtracer by itself.
    private static var backtraces: [String: String] {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let compiler = folders.map { $0 + "/swift" }.first { FileManager.default.isExecutableFile(atPath: $0) }
        guard let compiler else { return [:] }
        let tool = URL(filePath: compiler).resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "../libexec/swift/linux/swift-backtrace").path(percentEncoded: false)
        return ["SWIFT_BACKTRACE": "enable=yes,swift-backtrace=\(tool)"]
    }

    func command(_ arguments: [String]) -> Command {
        Command(words: [path] + arguments, environment: environment)
    }
}

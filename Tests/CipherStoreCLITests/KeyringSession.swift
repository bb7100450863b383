import CipherTestSupport
import Foundation
import Testing

/// A separate desktop session: a D-Bus bus, and gnome-keyring as its Secret Service.
final class KeyringSession {
    private static func find(_ program: String) -> String? {
        ["/usr/bin/", "/bin/"].map { $0 + program }.first(where: FileManager.default.isExecutableFile)
    }

    /// Whether the programs are installed; `Scripts/setup --keyring` installs them.
    static var isPossible: Bool { find("dbus-daemon") != nil && find("gnome-keyring-daemon") != nil }

    private let folder: TemporaryFolder
    private let bus: ToolProcess
    private var keyring: ToolProcess?

    /// The environment of the session's programs.
    let environment: [String: String]

    /// A session without a Secret Service.
    init() throws {
        folder = try TemporaryFolder()
        for name in ["home", "run"] {
            try FileManager.default.createDirectory(
                atPath: folder.path(name), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        }
        environment = [
            "HOME": folder.path("home"), "XDG_RUNTIME_DIR": folder.path("run"),
            "XDG_DATA_HOME": folder.path("home/share"), "XDG_CONFIG_HOME": folder.path("home/config"),
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(folder.path("run/bus"))",
        ]
        // A separate file, because the system's file would start a key store automatically.
        let configuration = try folder.write(
            """
            <busconfig><type>session</type><listen>unix:path=\(folder.path("run/bus"))</listen>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
            <allow own="*"/></policy></busconfig>
            """, to: "bus.conf")
        bus = try ToolProcess(
            try #require(Self.find("dbus-daemon")), ["--config-file=\(configuration)", "--nofork", "--print-address"],
            environment: environment)
        while try bus.outputSoFar.isEmpty { try #require(bus.isRunning, "the bus did not start") }
        // Without its file capabilities, which a container may forbid.
        try FileManager.default.copyItem(
            atPath: try #require(Self.find("gnome-keyring-daemon")), toPath: folder.path("keyring-daemon"))
        try folder.write("password", to: "password")
    }

    deinit {
        keyring?.kill()
        bus.kill()
    }

    /// Starts the key store, or restarts it as after a login; ``isReady`` shows when it answers.
    func start(unlocked: Bool) throws {
        keyring?.kill()
        // The bus must release the name before the next key store requests it.
        _ = try keyring?.finish()
        let unlock = unlocked ? "--unlock <'\(folder.path("password"))'" : "</dev/null"
        keyring = try ToolProcess(
            "/bin/sh", ["-c", "exec '\(folder.path("keyring-daemon"))' --foreground --components=secrets \(unlock)"],
            environment: environment)
        // The key store cannot answer until it has its name on the bus.
        while try run("inspect", folder.path("bus.conf"), "--key-secret-service", "nobody", "--json").failureCode()
            == "keyStoreUnavailable"
        {
            try #require(keyring?.isRunning == true, "the key store did not start")
        }
    }

    /// Runs the tool in the session.
    func run(_ arguments: String...) throws -> ToolRun {
        try ToolRun.run(Programs.tool, arguments, environment: environment)
    }

    /// Starts the tool in the session.
    func begin(_ arguments: String...) throws -> ToolProcess {
        try ToolProcess(Programs.tool, arguments, environment: environment)
    }
}

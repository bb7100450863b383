import CipherTestSupport
import Foundation
import Testing

/// A desktop session of its own: a D-Bus bus, and gnome-keyring as its Secret Service.
final class KeyringSession {
    private static func find(_ program: String) -> String? {
        ["/usr/bin/", "/bin/"].map { $0 + program }.first(where: FileManager.default.isExecutableFile)
    }

    /// Whether the programs are there; `Scripts/setup --keyring` installs them.
    static var isPossible: Bool { find("dbus-daemon") != nil && find("gnome-keyring-daemon") != nil }

    private let folder: TemporaryFolder
    private let bus: ToolProcess
    private var keyring: ToolProcess?

    /// What a program of the session has in its environment.
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
        // Not the system's file: that one would start a key store by itself.
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

    /// Starts the key store, or starts it again as after a login; ``isReady`` tells when it answers.
    func start(unlocked: Bool) throws {
        keyring?.kill()
        // The bus takes the name back before the next one wants it.
        _ = try keyring?.finish()
        let unlock = unlocked ? "--unlock <'\(folder.path("password"))'" : "</dev/null"
        keyring = try ToolProcess(
            "/bin/sh", ["-c", "exec '\(folder.path("keyring-daemon"))' --foreground --components=secrets \(unlock)"],
            environment: environment)
        // Until it has its name on the bus nobody can be asked.
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

internal import CipherDatabaseConversion
internal import CipherSystemFiles

/// The options of the commands that may encrypt a file.
enum UpgradeOptions {
    static let all: [Option] = [.lockTimeout, .busyTimeout, .progress]

    /// Runs an upgrade with a progress bar, and with signals that cancel it.
    ///
    /// - Parameter isRehearsal: Whether the run ends without a swap.
    static func run<Result>(
        _ invocation: Invocation, isRehearsal: Bool = false, _ body: (ConversionOptions) throws -> Result
    ) throws -> Result {
        var options = try waiting(invocation)
        let bar = ProgressBar.make(
            try invocation.choice(.progress, default: .auto), isRehearsal: isRehearsal)
        if let bar { options.progress = { bar.update($0) } }
        // While the key is typed, a signal ends the process as usual.
        try KeyOptions.readTyped(invocation)
        let cancellation = UpgradeCancellation()
        options.cancellation = cancellation
        try SignalWatch.cancel(cancellation)
        defer { bar?.end() }
        return try body(options)
    }

    /// Returns options that specify how long to wait for other processes.
    static func waiting(_ invocation: Invocation) throws -> ConversionOptions {
        var options = ConversionOptions()
        options.maximumAttempts = nil
        options.upgradeTimeout = try invocation.duration(.lockTimeout, default: options.upgradeTimeout)
        options.busyTimeout = try invocation.duration(.busyTimeout, default: options.busyTimeout)
        return options
    }
}

extension Duration {
    /// The duration in seconds.
    package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }

    /// The duration in milliseconds, limited to the range of SQLite's timeouts.
    package var inMilliseconds: Int32 { Int32(max(0, min(inSeconds * 1_000, Double(Int32.max)))) }
}

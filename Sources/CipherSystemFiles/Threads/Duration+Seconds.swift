extension Duration {
    /// In seconds.
    package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }

    /// In milliseconds, as far as SQLite can count them.
    package var inMilliseconds: Int32 { Int32(max(0, min(inSeconds * 1_000, Double(Int32.max)))) }
}

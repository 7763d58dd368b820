extension Duration {
    /// Within how long a cancelled wait must end in a test.
    ///
    /// The promise is 50 ms, and `Benchmarks` measures it.  On a machine that does other things besides, a test can only
    /// tell waking from not waking; what it waits for would not come for longer than this.
    public static let promptly = Duration.seconds(45)
}

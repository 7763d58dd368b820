import Foundation

/// The chance of a test process: one number, from which every draw comes, so that what failed once can be run again.
///
/// `Tests/run` sets `SEED` to what the commit says, and prints it; `SEED=N` takes another, and programs that tests start inherit it.
public enum Seed {
    /// `SEED`, or 1.
    public static let value: UInt64 = {
        guard let text = ProcessInfo.processInfo.environment["SEED"] else { return 1 }
        guard let value = UInt64(text) else { fatalError("SEED=\(text): not a number of 64 bits") }
        return value
    }()

    /// For the message of an expectation: `SEED=42`.
    public static var text: String { "SEED=\(value)" }

    /// A generator of its own for a place, so that no test depends on what others drew before it.
    ///
    /// - Parameter argument: what tells several generators of one function apart: a test's argument, a round.
    public static func generator(
        _ argument: Any = "", fileID: String = #fileID, function: String = #function
    ) -> SplitMix {
        _ = said
        return SplitMix(state: value ^ hash("\(fileID) \(function) \(argument)"))
    }

    /// In the output before the first test that draws can fail.
    private static let said: Void = FileHandle.standardError.write(Data("This process draws with \(text).\n".utf8))

    /// 64 bits of FNV-1a: the same in every process.
    private static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}

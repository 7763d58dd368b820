/// The time limits for a reader, by kind of command.
///
/// Time extensions that the reader requests are added; ``CCIDTimeLimits/total`` bounds the sum.
struct CCIDTimeLimits: Sendable {
    var write = Duration.seconds(5)
    /// Power-on, including the wait for a mute card at each voltage.
    var powerOn = Duration.seconds(20)
    var powerOff = Duration.seconds(5)
    var slotStatus = Duration.seconds(3)
    var parameters = Duration.seconds(5)
    /// An exchange: cards may be slow, and readers of APDU level grant their requests for time.
    var exchange = Duration.seconds(10)
    var escape = Duration.seconds(30)
    var abort = Duration.seconds(2)
    var drain = Duration.milliseconds(20)
    /// The longest wait for an outstanding answer before the reader is released.
    var settling = Duration.seconds(2)
    /// The first slot status, and that of a slow starter; repeated ``resynchronizations`` times.
    var resynchronization = Duration.milliseconds(200)
    var slowResynchronization = Duration.seconds(1)
    var resynchronizations = 3
    /// The time that a reader's new search for cards takes, and the number of times it is started.
    var firstLook = Duration.seconds(1)
    var firstLooks = 10
    /// Everything in one command.
    var total = Duration.seconds(120)

    func duration(of kind: CCIDCommand.Kind) -> Duration {
        switch kind {
        case .iccPowerOn: powerOn
        case .iccPowerOff: powerOff
        case .getSlotStatus: slotStatus
        case .setParameters, .getParameters: parameters
        case .escape: escape
        default: exchange
        }
    }

    /// Returns the additional time for a reader's own command.
    ///
    /// - Parameter command: `FF C2 01` runs commands that may take 90 s (PC/SC part 3).  `FF 00 40 P2 04 T1 T2 N B`
    ///   blinks N times for T1 and T2, in tenths of a second, and a reader with `blockingLights` answers afterwards
    ///   (ACS API v2.04, 6.2).
    static func extra(for command: [UInt8], _ quirks: Set<ReaderQuirk>) -> Duration {
        if command.starts(with: [0xFF, 0xC2, 0x01]) { return .seconds(80) }
        guard quirks.contains(.blockingLights), command.count >= 9, command.starts(with: [0xFF, 0x00, 0x40]) else {
            return .zero
        }
        return .milliseconds(100 * Int(command[7]) * (Int(command[5]) + Int(command[6])))
    }
}

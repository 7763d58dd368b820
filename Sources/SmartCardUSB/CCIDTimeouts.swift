/// How long a reader may take, by what it is asked.
///
/// What a reader asks for by a time extension is added; ``CCIDTimeouts/total`` bounds it all.
struct CCIDTimeouts: Sendable {
    var write = Duration.seconds(5)
    /// With the times that a mute card is waited for, at each voltage.
    var powerOn = Duration.seconds(20)
    var powerOff = Duration.seconds(5)
    var slotStatus = Duration.seconds(3)
    var parameters = Duration.seconds(5)
    /// A card may take its time; readers of APDU level answer its requests for more by themselves.
    var exchange = Duration.seconds(10)
    var escape = Duration.seconds(30)
    var abort = Duration.seconds(2)
    var drain = Duration.milliseconds(20)
    /// The first slot status of all, and that of a slow starter; repeated ``resynchronisations`` times.
    var resynchronisation = Duration.milliseconds(200)
    var slowResynchronisation = Duration.seconds(1)
    var resynchronisations = 3
    /// How long a reader looks for cards that has just begun to, and how often it is told to.
    var firstLook = Duration.seconds(1)
    var firstLooks = 10
    /// Everything about one command.
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

    /// How much longer a command of the reader's own takes than others.
    ///
    /// - Parameter command: `FF C2 01` runs what may take 90 s (PC/SC part 3).  `FF 00 40 P2 04 T1 T2 N B` blinks N times
    ///   for T1 and T2, tenths of a second each, and a reader with `blockingLights` answers when it is done (ACS API
    ///   v2.04, 6.2).
    static func extra(for command: [UInt8], _ quirks: Set<ReaderQuirk>) -> Duration {
        if command.starts(with: [0xFF, 0xC2, 0x01]) { return .seconds(80) }
        guard quirks.contains(.blockingLights), command.count >= 9, command.starts(with: [0xFF, 0x00, 0x40]) else {
            return .zero
        }
        return .milliseconds(100 * Int(command[7]) * (Int(command[5]) + Int(command[6])))
    }
}

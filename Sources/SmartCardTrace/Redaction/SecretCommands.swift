import SmartCard

/// Commands of which the data field, or the answer, is nothing but a secret.
enum SecretCommands {
    /// A row matches if all that it tells of does.
    private struct Row {
        let ins: ClosedRange<UInt8>
        var cla: ClosedRange<UInt8> = 0x00...0xFE
        var p1: ClosedRange<UInt8> = 0x00...0xFF
        var p2: ClosedRange<UInt8> = 0x00...0xFF
        let item: TraceEvent.RedactedItem

        func matches(_ header: [UInt8]) -> Bool {
            guard header.count >= 4 else {
                return header.count > 1 && cla.contains(header[0]) && ins.contains(header[1])
            }
            return cla.contains(header[0]) && ins.contains(header[1]) && p1.contains(header[2])
                && p2.contains(header[3])
        }
    }

    private static let commands: [Row] = [
        // VERIFY, CHANGE REFERENCE DATA, DISABLE and ENABLE VERIFICATION REQUIREMENT, RESET RETRY COUNTER, and the forms of
        // them whose data are objects (ISO/IEC 7816-4, 11.6; as DISABLE and ENABLE CHV, GSM 11.11, 9.2).
        Row(ins: 0x20...0x21, cla: 0x00...0xFF, item: .pin),
        Row(ins: 0x24...0x29, cla: 0x00...0xFF, item: .pin),
        Row(ins: 0x2C...0x2D, cla: 0x00...0xFF, item: .pin),
        // LOAD KEYS (PC/SC part 3, 3.2.2.1.4).
        Row(ins: 0x82...0x82, cla: 0xFF...0xFF, item: .key),
        // PUT KEY (GlobalPlatform Card Specification, 11.8), CHANGE KEY of Calypso.
        Row(ins: 0xD8...0xD8, item: .key),
        // STORE DATA (GlobalPlatform Card Specification, 11.11) personalizes a card.
        Row(ins: 0xE2...0xE2, cla: 0x80...0x8F, item: .key),
        Row(ins: 0xE2...0xE2, cla: 0xC0...0xCF, item: .key),
        Row(ins: 0xE2...0xE2, cla: 0xE0...0xEF, item: .key),
        // CHANGE KEY of DESFire, in ISO/IEC 7816-4 (NXP AN12752).
        Row(ins: 0xC4...0xC4, cla: 0x90...0x90, item: .key),
        // IMPORT ASYMMETRIC KEY and SET MANAGEMENT KEY of a YubiKey (Yubico, PIV extensions).
        Row(ins: 0xFE...0xFF, cla: 0x00...0x7F, item: .key),
        // PUT DATA of OpenPGP cards: keys of secure messaging, Resetting Code, AES key (OpenPGP card 3.4, 4.4.1).
        Row(ins: 0xDA...0xDA, cla: 0x00...0x7F, p1: 0...0, p2: 0xD1...0xD2, item: .key),
        Row(ins: 0xDA...0xDA, cla: 0x00...0x7F, p1: 0...0, p2: 0xD3...0xD3, item: .pin),
        Row(ins: 0xDA...0xDA, cla: 0x00...0x7F, p1: 0...0, p2: 0xD5...0xD5, item: .key),
        Row(ins: 0xDA...0xDA, cla: 0x00...0x7F, p1: 0...0, p2: 0xF4...0xF4, item: .key),
    ]

    private static let answers: [Row] = [
        // RUN GSM ALGORITHM: SRES and Kc (GSM 11.11, 9.2.16).
        Row(ins: 0x88...0x88, cla: 0xA0...0xA0, item: .key),
        // AUTHENTICATE of a USIM: CK, IK, Kc (3GPP TS 31.102, 7.1.2).  P2 of EMV's INTERNAL AUTHENTICATE is 0.
        Row(ins: 0x88...0x89, cla: 0x00...0x8F, p2: 0x80...0xFF, item: .key),
        // PERFORM SECURITY OPERATION, DECIPHER: mostly a key (ISO/IEC 7816-8).
        Row(ins: 0x2A...0x2A, cla: 0x00...0x1F, p1: 0x80...0x80, p2: 0x84...0x86, item: .key),
    ]

    /// Returns the kind of secret that fills the data field of a command with `header`; nil if there is none.
    static func item(of header: [UInt8]) -> TraceEvent.RedactedItem? { commands.first { $0.matches(header) }?.item }

    static func item(of command: CommandAPDU) -> TraceEvent.RedactedItem? { item(of: header(command)) }

    /// Returns the kind of secret that fills the answer to `command`; nil if there is none.
    static func item(ofAnswerTo command: CommandAPDU) -> TraceEvent.RedactedItem? {
        let header = header(command)
        return answers.first { $0.matches(header) }?.item
    }

    private static func header(_ command: CommandAPDU) -> [UInt8] {
        [command.cla, command.ins, command.p1, command.p2]
    }
}

extension CommandAPDU {
    /// Returns true if `response` has format 1: one object, 80, with values without tags that depend on the transaction.
    ///
    /// GENERATE AC and INTERNAL AUTHENTICATE (EMV Book 3, 6.5.5.4 and 6.5.9.4), EXCHANGE RELAY RESISTANCE DATA (EMV Book
    /// C-2, 5.3.2): cryptograms, random numbers and times, whose digits make account numbers by chance.
    func isFormat1(_ response: [UInt8]) -> Bool {
        cla != 0xFF && [0xAE, 0x88, 0xEA].contains(ins) && response.first == 0x80
    }
}

import EMVContactless
import SmartCard
import TestSupport
import Testing

/// EMV Book 3, 10.6 and 10.7.
@Suite struct RiskManagementTests {
    /// 10.6.1: greater than or equal to the limit.
    @Test(
        arguments: [
            (99, 0, 100, []), (100, 0, 100, .floorLimitExceeded), (0, 0, 0, .floorLimitExceeded),
            (60, 39, 100, []), (60, 40, 100, .floorLimitExceeded), (.max, 1, .max, .floorLimitExceeded),
        ] as [(UInt64, UInt64, UInt64, TerminalVerificationResults)])
    func floorLimit(_ amount: UInt64, _ earlier: UInt64, _ limit: UInt64, _ expected: TerminalVerificationResults) {
        expectEqual(TerminalRiskManagement.floorLimit(amount: amount, earlier: earlier, limit: limit), expected)
    }

    /// 10.6.2, figure 16: 20 percent below 400.00, rising to 60 percent at the floor limit of 1,000.00.
    ///
    /// At 700.00 half of the way is done: 40 percent.  At 415.00 it is 21 percent.
    @Test(
        arguments: [
            (0, 20, true), (0, 21, false), (399_99, 20, true), (399_99, 21, false), (400_00, 20, true),
            (400_00, 21, false),
            (414_99, 21, false), (415_00, 21, true), (415_00, 22, false), (700_00, 40, true), (700_00, 41, false),
            (999_99, 59, true), (999_99, 60, false),
            // The floor limit is another check's affair.
            (1_000_00, 1, false), (1_000_01, 1, false),
            // Numbers that are none of 1 to 99
            (700_00, .min, true), (700_00, .max, false),
        ] as [(UInt64, Int, Bool)])
    func randomSelection(_ amount: UInt64, _ number: Int, _ isSelected: Bool) throws {
        let selection = try #require(
            TerminalRiskManagement.RandomSelection(
                targetPercentage: 20, maximumTargetPercentage: 60, threshold: 400_00))
        expectEqual(
            TerminalRiskManagement.select(selection, amount: amount, floorLimit: 1_000_00, randomNumber: number),
            isSelected ? .selectedRandomlyForOnline : [])
    }

    @Test func randomSelectionAtItsBounds() throws {
        // 0 percent is never, 99 always, and amounts that no number of 64 bits times 99 holds are no trouble.
        let never = try #require(
            TerminalRiskManagement.RandomSelection(targetPercentage: 0, maximumTargetPercentage: 0, threshold: 0))
        let always = try #require(
            TerminalRiskManagement.RandomSelection(targetPercentage: 99, maximumTargetPercentage: 99, threshold: 0))
        let rising = try #require(
            TerminalRiskManagement.RandomSelection(targetPercentage: 0, maximumTargetPercentage: 99, threshold: 0))
        for number in 1...99 {
            func selects(_ selection: TerminalRiskManagement.RandomSelection, _ amount: UInt64) -> Bool {
                !TerminalRiskManagement.select(selection, amount: amount, floorLimit: .max, randomNumber: number)
                    .isEmpty
            }
            #expect(!selects(never, 1) && selects(always, 1))
            #expect(!selects(rising, 0) && selects(rising, .max - 1) == (number < 99))
        }
        // A threshold above the floor limit is never reached.
        let high = try #require(
            TerminalRiskManagement.RandomSelection(targetPercentage: 10, maximumTargetPercentage: 99, threshold: 500))
        #expect(TerminalRiskManagement.select(high, amount: 99, floorLimit: 100, randomNumber: 11).isEmpty)
        for (target, maximum) in [(-1, 10), (11, 10), (10, 100)] {
            expectEqual(
                TerminalRiskManagement.RandomSelection(
                    targetPercentage: target, maximumTargetPercentage: maximum, threshold: 0), nil)
        }
    }

    /// 10.6.3: the difference may be as great as the limit.
    @Test(
        arguments: [
            (10, 7, 3, 5, []), (11, 7, 3, 5, .lowerConsecutiveOfflineLimitExceeded),
            (12, 7, 3, 5, .lowerConsecutiveOfflineLimitExceeded),
            (13, 7, 3, 5, [.lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded]),
            // A limit below the lower one
            (10, 7, 3, 2, .upperConsecutiveOfflineLimitExceeded),
            // Never online
            (1, 0, 3, 5, .newCard),
            (6, 0, 3, 5, [.newCard, .lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded]),
            (0, 0, 3, 5, [.newCard, .lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded]),
            // No counter, and a counter that has not moved
            (nil, 7, 3, 5, [.lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded]),
            (10, nil, 3, 5, [.lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded]),
            (nil, nil, 3, 5, [.lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded]),
            (7, 7, 255, 255, [.lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded]),
            (6, 7, 255, 255, [.lowerConsecutiveOfflineLimitExceeded, .upperConsecutiveOfflineLimitExceeded]),
            (65535, 65280, 255, 255, []),
        ] as [(UInt16?, UInt16?, UInt8, UInt8, TerminalVerificationResults)])
    func velocity(
        _ counter: UInt16?, _ lastOnline: UInt16?, _ lower: UInt8, _ upper: UInt8,
        _ expected: TerminalVerificationResults
    ) {
        expectEqual(
            TerminalRiskManagement.velocity(
                transactionCounter: counter, lastOnline: lastOnline, lowerLimit: lower, upperLimit: upper), expected)
    }

    // MARK: Terminal action analysis

    /// 10.7: denial before online before default, the terminal's codes and the issuer's alike.
    @Test(
        arguments: [
            // Found, online-only, with online capability, offline-only
            ("00 00 00 00 00", .arqc, .tc, .tc),
            ("00 10 00 00 00", .aac, .aac, .aac),  // terminal, denial
            ("00 40 00 00 00", .aac, .aac, .aac),  // issuer, denial
            ("00 00 00 80 00", .arqc, .arqc, .tc),  // terminal, online
            ("00 00 00 10 00", .arqc, .arqc, .tc),  // issuer, online
            ("80 00 00 00 00", .arqc, .tc, .aac),  // terminal, default
            ("08 00 00 00 00", .arqc, .tc, .aac),  // issuer, default
            ("80 10 00 80 00", .aac, .aac, .aac), ("80 00 00 80 00", .arqc, .arqc, .aac),
            ("00 00 00 00 80", .arqc, .tc, .tc),  // nobody's
        ] as [(String, ApplicationCryptogramType, ApplicationCryptogramType, ApplicationCryptogramType)])
    func actionAnalysis(
        _ found: String, _ onlineOnly: ApplicationCryptogramType, _ both: ApplicationCryptogramType,
        _ offlineOnly: ApplicationCryptogramType
    ) throws {
        let results = try #require(TerminalVerificationResults(try wire(found)))
        let terminal = ActionCodes(
            denial: .serviceNotAllowed, online: .floorLimitExceeded, default: .offlineDataAuthenticationNotPerformed)
        let issuer = ActionCodes(denial: .expiredApplication, online: .selectedRandomlyForOnline, default: .ddaFailed)
        func request(_ capability: TerminalActionAnalysis.OnlineCapability) -> ApplicationCryptogramType {
            TerminalActionAnalysis.request(for: results, terminal: terminal, issuer: issuer, capability: capability)
        }
        expectEqual(request(.onlineOnly), onlineOnly)
        expectEqual(request(.offlineWithOnlineCapability), both)
        expectEqual(request(.offlineOnly), offlineOnly)
    }

    /// 10.7: without issuer action codes whatever was found sends online, and declines where that cannot be.
    @Test func absentActionCodes() throws {
        let none = ActionCodes { _ in nil }
        #expect(none.denial == [] && none.online.bytes == [0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        expectEqual(none.default.bytes, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        func offline(_ results: TerminalVerificationResults) -> ApplicationCryptogramType {
            TerminalActionAnalysis.requestOffline(for: results, terminal: ActionCodes(), issuer: none)
        }
        #expect(offline([]) == .tc && offline(.newCard) == .aac)
        let values: [TLVTag: String] = [0x9F0E: "00 10 00 00 00", 0x9F0F: "B8 60 AC 88 00", 0x9F0D: "B8 50 AC 88"]
        let codes = ActionCodes { tag in values[tag].flatMap { try? wire($0) } }
        #expect(codes.denial == .serviceNotAllowed && codes.online.bytes.hex == "B860AC8800" && codes.default == .all)
    }

    /// EMV Book 4, Annex A1
    @Test(
        arguments: [
            (0x11, .onlineOnly), (0x14, .onlineOnly), (0x21, .onlineOnly), (0x34, .onlineOnly),
            (0x12, .offlineWithOnlineCapability), (0x25, .offlineWithOnlineCapability),
            (0x13, .offlineOnly), (0x36, .offlineOnly), (0x20, nil), (0x27, nil),
        ] as [(UInt8, TerminalActionAnalysis.OnlineCapability?)])
    func terminalTypes(_ type: UInt8, _ expected: TerminalActionAnalysis.OnlineCapability?) {
        expectEqual(TerminalActionAnalysis.OnlineCapability(terminalType: type), expected)
    }
}

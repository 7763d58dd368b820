public import SmartCard

/// Parsers that nothing outside calls by themselves, for the fuzzer.
@_spi(Fuzzing)
public enum FuzzedParsers {
    /// Takes EF.CardAccess, or DG14.
    public static func takeSecurityInfos(_ file: [UInt8]) {
        for infos in [SecurityInfos(file), try? SecurityInfos(dataGroup14: file)] {
            guard let infos else { continue }
            _ = "\(infos.paceInfos)"
            _ = ChipAuthenticationOffer.best(of: infos)
        }
    }

    /// Takes DG15, DG14 and the chip's answer.
    ///
    /// - Returns: nil if there is no key, or none that is usable.
    public static func takeActiveAuthentication(
        publicKey: [UInt8], securityInfos: [UInt8]?, response: ResponseAPDU
    ) -> ActiveAuthentication.Verdict? {
        var random = SystemRandomSource()
        guard
            var protocolRun = try? ActiveAuthentication(
                publicKey: publicKey, securityInfos: securityInfos, longestResponse: 256, random: &random),
            case .send = protocolRun.next(nil), case .finished(let verdict) = protocolRun.next(response)
        else { return nil }
        return verdict
    }
}

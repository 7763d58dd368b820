import SmartCard

/// The file control information of the selected application (EMV Book 1, 11.3.4).
extension KernelActivation {
    /// Tag A5 of the FCI; nil if it is absent, or the FCI cannot be parsed.
    var proprietaryTemplate: TLVList? {
        (try? TLVList(selectResponse.data))?[0x6F]?.children[0xA5]?.children
    }

    /// The ISO 639-1 codes of tag 5F2D, one to four with two letters in either case; empty for any other value.
    var languagePreference: [String] {
        let letters = (proprietaryTemplate?[0x5F2D]?.value ?? []).map { $0 | 0x20 }
        guard letters.count % 2 == 0, letters.count <= 8, letters.allSatisfy({ (0x61...0x7A).contains($0) }) else {
            return []
        }
        return stride(from: 0, to: letters.count, by: 2).map {
            String(decoding: letters[$0..<$0 + 2], as: UTF8.self)
        }
    }
}

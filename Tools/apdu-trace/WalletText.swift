import SmartCard

/// The data objects of a wallet's answer, one a line.  Their tags mean other things in payment applications.
enum WalletText {
    /// kormax, `apple-vas` and `google-smart-tap`.
    private static let names: [TLVTag: String] = [
        0x6F: "FCI Template", 0x50: "Application Label", 0x9F21: "Version", 0x9F23: "Mobile Capabilities",
        0x9F24: "Nonce", 0x70: "Response Message Template", 0x9F27: "VAS Data", 0x9F2A: "Mobile Token",
        0xC0: "Version", 0xC1: "Features", 0xC2: "Device Nonce", 0xC3: "Device Ephemeral Public Key",
        0xA5: "FCI Proprietary Template", 0xBF0C: "FCI Issuer Discretionary Data", 0x61: "Directory Entry",
        0x4F: "Application Identifier", 0x87: "Application Priority Indicator", 0x73: "Discretionary Template",
        0xDF4D: "Maximum Version", 0xDF6D: "Minimum Version", 0xDF62: "Capabilities", 0xDF6E: "Device Nonce",
    ]

    /// - Parameter command: the one that is answered.
    /// - Returns: nil if it is none to a wallet.
    static func lines(_ list: TLVList, answering command: CommandAPDU, reveal: Bool) -> [String]? {
        guard let command = WalletCommand(command) else { return nil }
        let isHidden = command.answersPasses && !reveal
        func lines(_ object: TLV, _ indent: Int) -> [String] {
            let value = isHidden ? String(repeating: "*", count: object.value.count * 2) : object.value.hex
            let text = object.tag.isConstructed || value.isEmpty ? "" : "  \(value)"
            return ["\(String(repeating: " ", count: indent))\(object.tag)  \(names[object.tag] ?? "unknown")\(text)"]
                + (object.tag.isConstructed ? object.children.flatMap { lines($0, indent + 2) } : [])
        }
        return list.flatMap { lines($0, 0) }
    }
}

import SmartCard

extension EMVCard {
    /// A transaction of the selected application.
    struct Transaction {
        /// The data that the terminal has supplied, by tag.
        var terminal: [TLVTag: [UInt8]]
        /// The values for the PDOL as they came, without template 83.
        let options: [UInt8]
        /// The response to GET PROCESSING OPTIONS.
        let response: EMVApplication.Response
        var named: [NamedValue: [UInt8]]
        /// The number of EXCHANGE RELAY RESISTANCE DATA commands so far, and the data of the last one for the
        /// signature.
        var relays = 0
        var relayData: [UInt8] = []
        /// The operator whose slot of data the terminal has asked for; nil without integrated data storage.
        var storageOperator: [UInt8]?
        /// True after GENERATE AC or its substitute.
        var isDone = false
    }
}

/// The values that a card computes.
extension EMVCard.Transaction {
    mutating func name(_ kind: EMVApplication.Cryptogram) {
        named[.cid] = [kind.rawValue]
        // CVR: bits 8 and 7 = 10, no second GENERATE AC; bits 6 and 5 the cryptogram as in the CID (VIS, Annex A; M/Chip,
        // CVR byte 1).
        named[.acType] = [0x80 | kind.rawValue >> 2]
    }

    /// Numbers that no reader can tell, and yet the same each time for the same counter and command, so that a test finds
    /// them again.
    mutating func draw(from data: [UInt8]) {
        let numbers = RSAKey.sha1((named[.atc] ?? []) + data) ?? [UInt8](repeating: 0, count: 20)
        named[.unpredictableNumber] = Array(numbers[0..<4])
        named[.dynamicNumber] = Array(numbers[4..<12])
    }

    /// Returns the Application Cryptogram over the terminal's data, then the response's data, then the data of the
    /// response to GET PROCESSING OPTIONS.
    func cryptogram(_ application: EMVApplication, in response: EMVApplication.Response) -> [UInt8]? {
        application.cryptogram? { tag in
            tag == 0x9F36
                ? named[.atc]
                : terminal[tag] ?? response.objects.value(of: tag, named) ?? self.response.objects.value(of: tag, named)
        }
    }

    /// Returns the fDDA signature (EMV Contactless Book C-3, Annex C).  The ATC is the ICC Dynamic Number.  Format 05
    /// accompanies an offline approval, 95 an online authorization.
    func fastSignature(_ application: EMVApplication, _ kind: EMVApplication.Cryptogram) -> [UInt8]? {
        let objects = response.objects + application.recordObjects
        let hashed =
            [0x9F37, 0x9F02, 0x5F2A].map { terminal[$0] ?? [] } + [objects.value(of: 0x9F69, named) ?? []]
        return application.authentication?.signedDynamicData(
            format: kind == .tc ? 0x05 : 0x95, dynamicData: Self.counted(named[.atc]),
            terminalData: Array(hashed.joined()))
    }

    /// Returns the DDA signature (EMV Book 2, 6.5.1): the ICC Dynamic Number with its length; the hash also covers the
    /// command's data.
    func dynamicSignature(_ application: EMVApplication, _ data: [UInt8]) -> [UInt8]? {
        application.authentication?.signedDynamicData(
            format: 0x05, dynamicData: Self.counted(named[.dynamicNumber]), terminalData: data)
    }

    /// Returns the CDA signature (EMV Book 2, 6.6.1).
    ///
    /// - Parameters:
    ///   - data: the values for CDOL1.
    ///   - more: the data-storage and relay-resistance part of the ICC Dynamic Data (EMV Contactless Book C-2).
    func combinedSignature(
        _ application: EMVApplication, of response: EMVApplication.Response, _ data: [UInt8], _ more: [UInt8]
    ) -> [UInt8]? {
        // Transaction Data Hash Code: the data of both commands, and the response without the signature.
        let others = response.objects.filter {
            guard case .primitive(0x9F4B, _) = $0 else { return true }
            return false
        }
        guard let hash = RSAKey.sha1(options + data + others.encoded(named)) else { return nil }
        return application.authentication?.signedDynamicData(
            format: 0x05,
            dynamicData: Self.counted(named[.dynamicNumber]) + (named[.cid] ?? []) + (named[.cryptogram] ?? []) + hash
                + more,
            terminalData: terminal[0x9F37] ?? [])
    }

    /// The bytes with their number before them.
    private static func counted(_ bytes: [UInt8]?) -> [UInt8] {
        guard let bytes else { return [0] }
        return [UInt8(truncatingIfNeeded: bytes.count)] + bytes
    }

    /// Returns the request that the issuer may answer: an ARQC, and nothing else.
    func request(_ kind: EMVApplication.Cryptogram) -> IssuerUpdate.Request? {
        guard kind == .arqc, let cryptogram = named[.cryptogram] else { return nil }
        return IssuerUpdate.Request(
            cryptogram: cryptogram, atc: named[.atc] ?? [],
            unpredictableNumber: terminal[0x9F37] ?? [])
    }
}

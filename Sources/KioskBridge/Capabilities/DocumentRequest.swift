import TravelDocument

/// A request to read a travel document: `nfc.read`.
struct DocumentRequest {
    let key: AccessKey
    let dataGroups: Set<Int>

    /// - Throws: ``BridgeErrorPayload`` of code `INVALID_REQUEST`.  The text names the field, and never its contents.
    init(_ data: [String: JSONValue]) throws(BridgeErrorPayload) {
        key = try Self.key(data)
        guard let groups = data["dataGroups"] else {
            dataGroups = [1, 2]
            return
        }
        var numbers: Set<Int> = []
        for element in groups.elements ?? [.null] {
            guard let number = element.wholeNumber, (1...16).contains(number) else {
                throw BridgeErrorPayload(.invalidRequest, "dataGroups: numbers from 1 to 16 are due")
            }
            numbers.insert(Int(number))
        }
        dataGroups = numbers
    }

    private static func key(_ data: [String: JSONValue]) throws(BridgeErrorPayload) -> AccessKey {
        if let zone = data["mrz"]?.text {
            do { return AccessKey(try MachineReadableZone(zone)) } catch {
                throw BridgeErrorPayload(.invalidRequest, "mrz: \(error)")
            }
        }
        if let number = data["can"]?.text {
            do { return try AccessKey(number, kind: .cardAccessNumber) } catch {
                throw BridgeErrorPayload(.invalidRequest, "can: \(error)")
            }
        }
        guard let number = data["documentNumber"]?.text, let birth = data["dateOfBirth"]?.text,
            let expiry = data["dateOfExpiry"]?.text
        else {
            throw BridgeErrorPayload(
                .invalidRequest, "mrz, can, or documentNumber with dateOfBirth and dateOfExpiry are due")
        }
        do {
            return try AccessKey(documentNumber: number, dateOfBirth: birth, dateOfExpiry: expiry)
        } catch {
            throw BridgeErrorPayload(.invalidRequest, "documentNumber, dateOfBirth, dateOfExpiry: \(error)")
        }
    }
}

import Foundation
import SmartCard
import TravelDocument
import TravelDocumentImages

/// A document as a page sees it: what the holder could read on it, the portrait, and what is to be believed of it.
struct DocumentAnswer: Sendable {
    let data: [String: JSONValue]

    /// - Parameters:
    ///   - trust: the authorities to believe.
    ///   - date: today.
    init(_ reading: DocumentReading, trust: TrustList, at date: Date) {
        var data: [String: JSONValue] = [
            "chipRead": true,
            "dataGroups": .array(
                (1...16).filter { reading.bytes(of: .dataGroup($0)) != nil }.map { .string("DG\($0)") }),
        ]
        data["document"] = reading.zone.map { .object(Self.document($0, at: date)) }
        if case .encodedFaces(let faces)? = reading.contents[.dataGroup(2)], let face = faces.faces.first {
            data["portrait"] = Self.portrait(face)
        }
        data["security"] = .object(Self.security(reading, reading.belief(trust: trust, at: date)))
        self.data = data
    }

    private static func document(_ zone: MachineReadableZone, at date: Date) -> [String: JSONValue] {
        var document: [String: JSONValue] = [
            "type": .string(zone.documentCode), "issuer": .string(zone.issuingState),
            "number": .string(zone.documentNumber), "surname": .string(zone.name.primaryIdentifier),
            "givenNames": .string(zone.name.secondaryIdentifier), "nationality": .string(zone.nationality),
            "name": .string(
                [zone.name.secondaryIdentifier, zone.name.primaryIdentifier].filter { !$0.isEmpty }
                    .joined(separator: " ")),
            "sex": .string(zone.sex.map { String($0.rawValue) } ?? "<"),
        ]
        let today = DocumentDate(date)
        // Empty if no calendar has the date.
        document["dateOfBirth"] = .string(today.flatMap { zone.dateOfBirth.birth(notAfter: $0) }.map(text) ?? "")
        document["dateOfExpiry"] = .string(today.flatMap { zone.dateOfExpiry.expiry(near: $0) }.map(text) ?? "")
        return document
    }

    /// Returns a date of ISO 8601, with `??` for an unknown part.
    private static func text(_ date: DocumentDate) -> String {
        func digits(_ number: Int?, _ count: Int) -> String {
            guard let number else { return String(repeating: "?", count: count) }
            return String(repeating: "0", count: max(0, count - String(number).count)) + String(number)
        }
        return "\(digits(date.year, 4))-\(digits(date.month, 2))-\(digits(date.day, 2))"
    }

    /// The portrait decoded and encoded anew: browsers know no JPEG 2000, and no byte of a chip reaches theirs.
    private static func portrait(_ face: FaceImage) -> JSONValue? {
        guard let image = try? face.image.decoded().scaled(toFit: 480, by: 640), let jpeg = image.jpeg() else {
            return nil
        }
        return [
            "imageData": .string(Data(jpeg).base64EncodedString()), "mimeType": "image/jpeg",
            "width": JSONValue(Int64(image.width)), "height": JSONValue(Int64(image.height)),
        ]
    }

    private static func security(_ reading: DocumentReading, _ belief: DocumentBelief) -> [String: JSONValue] {
        let authentic: JSONValue =
            switch belief.verdict {
            case .believed: "yes"
            case .refuted: "no"
            case .undecided: "unknown"
            }
        let proofs = belief.findings.filter {
            [.chipAuthenticationMapping, .chipAuthentication, .activeAuthentication].contains($0.check)
        }
        let genuine: JSONValue =
            if proofs.contains(where: \.isFailure) { "no" } else if proofs.contains(where: { !$0.isOpen }) {
                "yes"
            } else {
                "unknown"
            }
        let isPACE = if case .pace = reading.access.method { true } else { false }
        return [
            "authentic": authentic, "chipGenuine": genuine, "access": isPACE ? "PACE" : "BAC",
            "expired": .bool(belief.findings.contains { $0.check == .documentExpiry && $0.isFlagged }),
            "findings": .array(
                belief.findings.filter { $0.isFailure || $0.isFlagged || $0.isOpen }.map { .string("\($0)") }),
        ]
    }
}

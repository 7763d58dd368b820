import SmartCard

/// DG16: persons to notify in an emergency (ICAO 9303-10, 4.7.16).
public struct PersonsToNotify: Hashable, Sendable {
    /// A person to notify.
    public struct Person: Hashable, Sendable {
        /// Object 5F50: the date on which the details were recorded.
        public let dateRecorded: DocumentDate?
        /// Object 5F51.
        public let name: DocumentName?
        /// Object 5F52.
        public let telephone: String?
        /// Object 5F53: its fields.
        public let address: [String]
    }

    public let persons: [Person]

    /// Parses `70 { 02 number, A1 { 5F50 date, 5F51 name, 5F52 telephone, 5F53 address }, A2 {…}, … }`, with 0 to 15 persons.
    ///
    /// Each object of a person may be missing.
    ///
    /// - Throws: ``TravelDocumentFormatError``.
    public init(parsing bytes: [UInt8]) throws(TravelDocumentFormatError) {
        var content = try Template(bytes, of: .dataGroup(16))
        // The tags of templates are A1 to AF.
        let count = try content.takeCount(0...15)
        var persons: [Person] = []
        for number in 0..<count {
            persons.append(try Person(content.takeTemplate(TLVTag(rawValue: 0xA1 + UInt32(number)))))
        }
        try content.finish()
        self.persons = persons
    }
}

extension PersonsToNotify.Person {
    fileprivate init(_ template: Template) throws(TravelDocumentFormatError) {
        var template = template
        dateRecorded = if let date = template.takeIfNext(0x5F50) { try template.date(date) } else { nil }
        name = template.takeIfNext(0x5F51).flatMap(template.name)
        telephone = template.takeIfNext(0x5F52).flatMap(template.text)
        address = template.takeIfNext(0x5F53).map(template.fields) ?? []
        try template.finish()
    }
}

extension PersonsToNotify: PersonalData {
    /// The number of persons.
    public var description: String { "persons to notify: \(persons.count)" }
}

extension PersonsToNotify.Person: PersonalData {
    public var description: String { "person to notify" }
}

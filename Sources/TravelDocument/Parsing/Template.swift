import SmartCard

/// The objects in a file or a template, taken one after the other; at its end nothing may be left.
struct Template {
    let file: ElementaryFile
    private let objects: TLVList
    private var position: TLVList.Index
    /// The offset after the last object.
    private let end: Int

    /// Opens a file: one object with the file's tag, and nothing after it; or several, with padding between them.
    ///
    /// - Parameter readsContents: false to leave the file's contents alone, which then need not be data objects.
    init(
        _ bytes: [UInt8], of file: ElementaryFile, readsContents: Bool = true
    ) throws(TravelDocumentFormatError) {
        guard bytes.count <= FileReader.maximumLength else {
            throw TravelDocumentFormatError(
                file: file, offset: FileReader.maximumLength, due: .size(FileReader.maximumLength))
        }
        guard let tag = file.tag else {
            self.init(try Self.objects(bytes, .emv, file), to: bytes.count, in: file)
            return
        }
        guard bytes.first == tag else {
            throw TravelDocumentFormatError(file: file, offset: 0, due: .object(TLVTag(rawValue: UInt32(tag))))
        }
        // Without its bit 6 the tag is that of a primitive object.
        let bytes = readsContents ? bytes : [tag & ~0x20] + bytes.dropFirst()
        let list = try Self.objects(bytes, [], file)
        guard let object = list.first, object.encoded.endIndex == bytes.count else {
            throw TravelDocumentFormatError(
                file: file, offset: list.first?.encoded.endIndex ?? 0, due: .end)
        }
        self.init(readsContents ? object.children : list, to: bytes.count, in: file)
    }

    private static func objects(
        _ bytes: [UInt8], _ padding: TLVList.Padding, _ file: ElementaryFile
    ) throws(TravelDocumentFormatError) -> TLVList {
        do { return try TLVList(bytes, padding: padding) } catch {
            throw TravelDocumentFormatError(file: file, offset: error.offset, due: .dataObjects(error.reason))
        }
    }

    /// The objects in a constructed object.
    init(_ object: TLV, in file: ElementaryFile) {
        self.init(object.children, to: object.value.endIndex, in: file)
    }

    private init(_ objects: TLVList, to end: Int, in file: ElementaryFile) {
        (self.objects, self.end, self.file) = (objects, end, file)
        position = objects.startIndex
    }

    /// The offset of the next object, or the end.
    var offset: Int { next?.offset ?? end }

    var next: TLV? { position == objects.endIndex ? nil : objects[position] }

    func error(_ due: TravelDocumentFormatError.Due, at offset: Int) -> TravelDocumentFormatError {
        TravelDocumentFormatError(file: file, offset: offset, due: due)
    }

    /// Takes the next object, whatever it is; nil at the end.
    mutating func take() -> TLV? {
        guard let object = next else { return nil }
        position = objects.index(after: position)
        return object
    }

    /// Takes the next object if it has this tag.
    mutating func takeIfNext(_ tag: TLVTag) -> TLV? { next?.tag == tag ? take() : nil }

    /// Takes the next object, which must have this tag.
    mutating func take(_ tag: TLVTag) throws(TravelDocumentFormatError) -> TLV {
        guard let object = takeIfNext(tag) else { throw error(.object(tag), at: offset) }
        return object
    }

    /// Takes the next object, which must have this tag, and returns the objects in it.
    mutating func takeTemplate(_ tag: TLVTag) throws(TravelDocumentFormatError) -> Template {
        Template(try take(tag), in: file)
    }

    /// Takes the number of templates, object 02: one byte.
    mutating func takeCount(_ range: ClosedRange<Int>) throws(TravelDocumentFormatError) -> Int {
        let object = try take(0x02)
        guard object.value.count == 1, let count = object.value.first else {
            throw error(.length(1...1), at: object.value.startIndex)
        }
        guard range.contains(Int(count)) else { throw error(.number(range), at: object.value.startIndex) }
        return Int(count)
    }

    /// Ends the template.
    func finish() throws(TravelDocumentFormatError) {
        guard next == nil else { throw error(.end, at: offset) }
    }
}

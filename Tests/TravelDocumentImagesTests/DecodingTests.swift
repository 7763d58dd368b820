import TestSupport
import Testing
import TravelDocument

@testable import TravelDocumentImages

@Suite struct DecodingTests {
    @Test("Bytes of no format are named so")
    func unknown() {
        #expect(throws: ImageError.unknownFormat) { try EncodedImage([0x89, 0x50, 0x4E, 0x47]).decoded() }
    }
}

import SmartCard
import Testing

@Suite struct SensitiveDataTests {
    @Test(arguments: [
        ("4761739001010010", "476173******0010"),
        ("4761739001010010D2212201", "476173******0010D*******"),
        ("4761739001010010=2212201", "476173******0010=*******"),
        ("541333008901FFFF", "541333**8901FFFF"),
        ("541333FF", "******FF"),
        ("", ""),
    ])
    func accountNumbers(_ digits: String, _ shown: String) {
        #expect(SensitiveData.maskingAccountNumber(digits) == shown)
    }

    @Test func constructedObjectsAreMaskedInside() {
        #expect(
            SensitiveData.maskedTLV(bytes("70 0E 5A 08 47 61 73 90 01 01 00 10 5F 20 01 41"))
                == "70[ 5A:476173******0010 5F20:** ]")
        #expect(SensitiveData.maskedTLV([]) == nil)
        #expect(SensitiveData.maskedTLV(bytes("47 61 73 90 01 01 00 10")) == nil)
    }
}

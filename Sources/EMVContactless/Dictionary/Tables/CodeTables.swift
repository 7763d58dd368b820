/// A part of ISO/IEC 8859, the encoding of an application's preferred name: tag 9F11 (EMV Book 4, Annex B.1; ISO/IEC
/// 8859-1 to 8859-10).
struct CodeTable: Hashable, Sendable {
    /// The number of the part, 1 to 10.
    let part: UInt8
    private var upperHalf: [Unicode.Scalar] { Self.upperHalves[Int(part) - 1] }

    /// ISO/IEC 8859-1.
    static let latin1 = Self(1)

    private init(_ part: UInt8) { self.part = part }

    init?(part: UInt8) {
        guard (1...10).contains(part) else { return nil }
        self.init(part)
    }

    /// Creates a code table.
    ///
    /// - Parameter index: tag 9F11: two digits, packed.
    /// - Returns: nil unless it is 01 to 10.
    init?(index: UInt8) {
        guard index & 0x0F < 10 else { return nil }
        self.init(part: index >> 4 * 10 + index & 0x0F)
    }

    /// The value of tag 9F11.
    var index: UInt8 { part / 10 * 16 + part % 10 }

    /// Decodes text.
    ///
    /// - Returns: nil if one of the bytes is a control character, or is unassigned in this part.
    func text(_ bytes: some Collection<UInt8>) -> String? {
        var text = String.UnicodeScalarView()
        for byte in bytes {
            let scalar = byte < 0xA0 ? Unicode.Scalar(byte) : upperHalf[Int(byte) - 0xA0]
            guard (0x20...0x7E).contains(byte) || byte >= 0xA0, scalar != "\u{FFFD}" else { return nil }
            text.append(scalar)
        }
        return String(text)
    }

    /// Encodes text.
    ///
    /// - Returns: nil if this part lacks one of the characters.
    func bytes(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            if scalar.isASCII, (0x20...0x7E).contains(scalar.value) {
                bytes.append(UInt8(scalar.value))
            } else if scalar != "\u{FFFD}", let place = upperHalf.firstIndex(of: scalar) {
                bytes.append(UInt8(0xA0 + place))
            } else {
                return nil
            }
        }
        return bytes
    }

    /// The characters A0 to FF of each part; � for unassigned bytes.
    private static let upperHalves: [[Unicode.Scalar]] = [
        // ISO/IEC 8859-1
        """
        \u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øù\
        úûüýþÿ
        """,
        // ISO/IEC 8859-2
        """
        \u{A0}Ą˘Ł¤ĽŚ§¨ŠŞŤŹ\u{AD}ŽŻ°ą˛ł´ľśˇ¸šşťź˝žżŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řů\
        úűüýţ˙
        """,
        // ISO/IEC 8859-3
        """
        \u{A0}Ħ˘£¤�Ĥ§¨İŞĞĴ\u{AD}�Ż°ħ²³´µĥ·¸ışğĵ½�żÀÁÂ�ÄĊĈÇÈÉÊËÌÍÎÏ�ÑÒÓÔĠÖ×ĜÙÚÛÜŬŜßàáâ�äċĉçèéêëìíîï�ñòóôġö÷ĝù\
        úûüŭŝ˙
        """,
        // ISO/IEC 8859-4
        """
        \u{A0}ĄĸŖ¤ĨĻ§¨ŠĒĢŦ\u{AD}Ž¯°ą˛ŗ´ĩļˇ¸šēģŧŊžŋĀÁÂÃÄÅÆĮČÉĘËĖÍÎĪĐŅŌĶÔÕÖ×ØŲÚÛÜŨŪßāáâãäåæįčéęëėíîīđņōķôõö÷øų\
        úûüũū˙
        """,
        // ISO/IEC 8859-5
        """
        \u{A0}ЁЂЃЄЅІЇЈЉЊЋЌ\u{AD}ЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя№ёђѓєѕіїјљ\
        њћќ§ўџ
        """,
        // ISO/IEC 8859-6
        """
        \u{A0}���¤�������،\u{AD}�������������\u{61B}���\u{61F}�\u{621}\u{622}\u{623}\u{624}\u{625}\u{626}\
        \u{627}\u{628}\u{629}\u{62A}\u{62B}\u{62C}\u{62D}\u{62E}\u{62F}\u{630}\u{631}\u{632}\u{633}\u{634}\
        \u{635}\u{636}\u{637}\u{638}\u{639}\u{63A}�����\u{640}\u{641}\u{642}\u{643}\u{644}\u{645}\u{646}\
        \u{647}\u{648}\u{649}\u{64A}\u{64B}\u{64C}\u{64D}\u{64E}\u{64F}\u{650}\u{651}\u{652}�������������
        """,
        // ISO/IEC 8859-7
        """
        \u{A0}‘’£€₯¦§¨©ͺ«¬\u{AD}�―°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ�ΣΤΥΦΧΨΩΪΫάέήίΰαβγδεζηθικλμνξοπρςστυφχψω\
        ϊϋόύώ�
        """,
        // ISO/IEC 8859-8
        """
        \u{A0}�¢£¤¥¦§¨©×«¬\u{AD}®¯°±²³´µ¶·¸¹÷»¼½¾��������������������������������‗\u{5D0}\u{5D1}\u{5D2}\
        \u{5D3}\u{5D4}\u{5D5}\u{5D6}\u{5D7}\u{5D8}\u{5D9}\u{5DA}\u{5DB}\u{5DC}\u{5DD}\u{5DE}\u{5DF}\u{5E0}\
        \u{5E1}\u{5E2}\u{5E3}\u{5E4}\u{5E5}\u{5E6}\u{5E7}\u{5E8}\u{5E9}\u{5EA}��\u{200E}\u{200F}�
        """,
        // ISO/IEC 8859-9
        """
        \u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏĞÑÒÓÔÕÖ×ØÙÚÛÜİŞßàáâãäåæçèéêëìíîïğñòóôõö÷øù\
        úûüışÿ
        """,
        // ISO/IEC 8859-10
        """
        \u{A0}ĄĒĢĪĨĶ§ĻĐŠŦŽ\u{AD}ŪŊ°ąēģīĩķ·ļđšŧž―ūŋĀÁÂÃÄÅÆĮČÉĘËĖÍÎÏÐŅŌÓÔÕÖŨØŲÚÛÜÝÞßāáâãäåæįčéęëėíîïðņōóôõöũøų\
        úûüýþĸ
        """,
    ].map { Array($0.unicodeScalars) }
}

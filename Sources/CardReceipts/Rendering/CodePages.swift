/// A code page of a printer: the characters of bytes 80 to FF.  Lower bytes are ASCII in every code page.
public struct CodePage: Hashable, Sendable {
    /// The number that selects the code page with `ESC t`.
    public let number: UInt8
    /// The name that iconv uses.
    public let name: String
    private let bytes: [Unicode.Scalar: UInt8]

    /// Creates a code page.
    ///
    /// - Parameters:
    ///   - number: the number for `ESC t`, from the printer's manual.
    ///   - name: the name, such as `CP858`.
    ///   - upperHalf: the 128 characters from 80 on, with U+FFFD for unassigned bytes.  Control characters count as
    ///     unassigned.
    public init(number: UInt8, name: String, upperHalf: String) {
        self.init(
            number: number, name: name,
            bytes: Dictionary(
                zip(upperHalf.unicodeScalars, UInt8(0x80)...0xFF).filter {
                    $0.0 != "\u{FFFD}" && $0.0.properties.generalCategory != .control
                }, uniquingKeysWith: { first, _ in first }))
    }

    private init(number: UInt8, name: String, bytes: [Unicode.Scalar: UInt8]) {
        (self.number, self.name, self.bytes) = (number, name, bytes)
    }

    /// Returns the same code page for a printer that selects it by `number`.
    public func numbered(_ number: UInt8) -> CodePage { CodePage(number: number, name: name, bytes: bytes) }

    /// Returns the byte of a character; nil for control characters and characters that the code page lacks.
    func byte(_ scalar: Unicode.Scalar) -> UInt8? {
        (0x20...0x7E).contains(scalar.value) ? UInt8(scalar.value) : bytes[scalar]
    }
}

// The numbers of Epson's printers.
extension CodePage {
    public static let all: [CodePage] = [.pc437, .pc850, .pc852, .pc858, .pc866, .windows1252, .greek]

    public static let pc437 = CodePage(
        number: 0, name: "CP437",
        upperHalf: """
            ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ\
            áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
            └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
            αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}
            """)

    public static let pc850 = CodePage(
        number: 2, name: "CP850",
        upperHalf: """
            ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ\
            áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
            └┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀\
            ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{AD}±‗¾¶§÷¸°¨·¹³²■\u{A0}
            """)

    public static let pc852 = CodePage(
        number: 18, name: "CP852",
        upperHalf: """
            ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×č\
            áíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐\
            └┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀\
            ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{AD}˝˛ˇ˘§÷¸°¨˙űŘř■\u{A0}
            """)

    public static let pc858 = CodePage(
        number: 19, name: "CP858",
        upperHalf: """
            ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒ\
            áíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
            └┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈ€ÍÎÏ┘┌█▄¦Ì▀\
            ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{AD}±‗¾¶§÷¸°¨·¹³²■\u{A0}
            """)

    public static let pc866 = CodePage(
        number: 17, name: "CP866",
        upperHalf: """
            АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ\
            абвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
            └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
            рстуфхцчшщъыьэюяЁёЄєЇїЎў°∙·√№¤■\u{A0}
            """)

    public static let windows1252 = CodePage(
        number: 16, name: "CP1252",
        upperHalf: """
            €\u{FFFD}‚ƒ„…†‡ˆ‰Š‹Œ\u{FFFD}Ž\u{FFFD}\u{FFFD}‘’“”•–—˜™š›œ\u{FFFD}žŸ\
            \u{A0}¡¢£¤¥¦§¨©ª«¬\u{AD}®¯°±²³´µ¶·¸¹º»¼½¾¿\
            ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß\
            àáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ
            """)

    public static let greek = CodePage(
        number: 15, name: "ISO-8859-7",
        upperHalf: """
            \u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\
            \u{A0}‘’£€₯¦§¨©\u{37A}«¬\u{AD}\u{FFFD}―°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏ\
            ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\u{FFFD}ΣΤΥΦΧΨΩΪΫάέήί\
            ΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ\u{FFFD}
            """)
}

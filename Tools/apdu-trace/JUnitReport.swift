/// Results as CI systems read them: the XML of JUnit, in the part that Jenkins, GitLab and GitHub's actions agree on.
struct JUnitReport {
    let cases: [ReplayResults.Case]
    let seconds: Double
    /// When it began: `2026-11-21T18:05:09`.
    let timestamp: String

    var xml: String {
        func count(_ isCounted: (ReplayResults.Case.Result) -> Bool) -> Int { cases.count { isCounted($0.result) } }
        let failures = count { if case .failed = $0 { true } else { false } }
        let errors = count { if case .broken = $0 { true } else { false } }
        let counts =
            #"tests="\#(cases.count)" failures="\#(failures)" errors="\#(errors)" time="\#(Self.decimal(seconds))""#
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="apdu-trace" \(counts)>
              <testsuite name="apdu-trace replay" \(counts) skipped="0" timestamp="\(timestamp)">
            \(cases.map(Self.element).joined(separator: "\n"))
              </testsuite>
            </testsuites>

            """
    }

    private static func element(_ entry: ReplayResults.Case) -> String {
        let parts = entry.path.split(separator: "/")
        let folder = parts.dropLast().joined(separator: "/")
        let start =
            #"    <testcase classname="\#(attribute(folder.isEmpty ? "." : folder))" name="\#(attribute(String(parts.last ?? "")))" time="\#(decimal(entry.seconds))""#
        func element(_ name: String, _ text: String) -> String {
            let message = text.split(separator: "\n").first.map(String.init) ?? ""
            return """
                \(start)>
                      <\(name) type="\(name)" message="\(attribute(message))"><![CDATA[\(characterData(text))]]></\(name)>
                    </testcase>
                """
        }
        return switch entry.result {
        case .passed: "\(start)/>"
        case .failed(let text): element("failure", text)
        case .broken(let text): element("error", text)
        }
    }

    /// Seconds with three decimals.
    private static func decimal(_ seconds: Double) -> String {
        let thousandths = Int(max(0, min(seconds, 1e9)) * 1000 + 0.5)
        return "\(thousandths / 1000).\(String(1000 + thousandths % 1000).dropFirst())"
    }

    /// Returns the text without characters that XML does not allow (XML 1.0, 2.2).
    private static func allowed(_ text: String) -> String.UnicodeScalarView {
        String.UnicodeScalarView(
            text.unicodeScalars.filter { scalar in
                switch scalar.value {
                case 0x09, 0x0A, 0x0D, 0x20...0xD7FF, 0xE000...0xFFFD, 0x10000...0x10FFFF: true
                default: false
                }
            })
    }

    private static func attribute(_ text: String) -> String {
        allowed(text).reduce(into: "") { result, scalar in
            switch scalar {
            case "&", "<", ">", "\"", "'", "\t", "\n", "\r": result += "&#\(scalar.value);"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }

    /// A CDATA section ends at the first `]]>` (XML 1.0, 2.7): one in the text is spread over two.
    private static func characterData(_ text: String) -> String {
        let pieces = String(allowed(text)).split(separator: "]]>", omittingEmptySubsequences: false)
        return pieces.joined(separator: "]]]]><![CDATA[>")
    }
}

import ComposableCheckout

/// The lines of a form's description.
enum TerminalForm {
    /// The fields in order, each with the key of its heading.
    static func fields(in elements: [FormElement]) -> [(heading: String, field: FormField)] {
        elements.flatMap { element -> [(String, FormField)] in
            guard case .group(let title, let parts) = element else { return [] }
            return parts.compactMap { if case .field(let field) = $0 { (title, field) } else { nil } }
        }
    }

    static func label(of field: FormField, _ texts: InputLocalizable) -> String {
        let (label, placeholder) = (texts.text(field.labelKey), texts.text(field.placeholderKey))
        return label == placeholder ? label : "\(label) (\(placeholder))"
    }

    /// Everything that a form shows.
    static func lines(_ elements: [FormElement], _ texts: InputLocalizable, indentation: String = "") -> [String] {
        elements.flatMap { element -> [String] in
            switch element {
            case .group(let title, let parts):
                [indentation + texts.text(title)] + lines(parts, texts, indentation: indentation + "  ")
            case .field(let field):
                [
                    "\(indentation)\(texts.text(field.labelKey)): "
                        + (field.isSecret && field.value.isEmpty ? "•••" : field.value)
                        + (field.errorKey.map { "  ! \(texts.text($0))" } ?? "")
                ]
            case .networks(let networks, let chosen):
                networks.map { "\(indentation)\($0 == chosen ? "(•)" : "( )") \($0.name)" }
            case .button: []
            }
        }
    }
}

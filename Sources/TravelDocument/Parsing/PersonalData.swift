/// A value that contains personal data, and prints without it: as its kind, and perhaps a count.
///
/// The data are in the value's properties; whoever prints a property prints what it contains.
public protocol PersonalData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension PersonalData {
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

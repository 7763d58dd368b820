public import Testing

/// Expects two values to be equal, as `#expect(value == expected)` does; a failure shows both, at the line of the call.
///
/// The compiler takes 2 ms for a call, and 10 to 30 for the macro: it expands that, and then looks for the operands' types
/// through all of `==`, literals included.  Of a test module with a thousand expectations that is the half.
///
/// - Parameter comment: what else is to be shown.
public func expectEqual<Value: Equatable>(
    _ value: Value, _ expected: Value, _ comment: @autoclosure () -> Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, comment(), sourceLocation: sourceLocation)
}

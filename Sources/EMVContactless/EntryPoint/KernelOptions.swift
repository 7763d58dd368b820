/// The options of a kernel: the settings of a combination that no other kernel has (EMV Contactless Book A, 5.4).
///
/// A kernel names its type as ``Kernel/Options``.  In JSON they are the object `options` of the kernel's combinations.
public protocol KernelOptions: Hashable, Codable, Sendable {
    /// The keys of the JSON object; any other is an error.
    static var keys: Set<String> { get }

    /// Creates the options of a combination that sets none.
    init()
}

/// The options of a kernel that has none.
public struct NoKernelOptions: KernelOptions {
    public static let keys: Set<String> = []
    public init() {}
}

/// Data that a kernel keeps from one activation for the next, in the same transaction or a later one.
///
/// An ``Outcome`` hands it out, and the next ``KernelActivation`` of the kernel contains it.  It stays in memory.  A type that
/// contains account data has to print without it.
public protocol KernelMemory: Hashable, Sendable {}

/// The memory of a terminal's kernels.  It may contain account data, and prints without its contents.
public struct KernelMemories: Hashable, Sendable {
    private var values: [KernelIdentifier: Erased] = [:]

    public init() {}

    /// The memory of a kernel; nil if it keeps none.
    public subscript(kernel: KernelIdentifier) -> (any KernelMemory)? {
        get { values[kernel]?.value as? any KernelMemory }
        set { values[kernel] = newValue.map { Erased($0) } }
    }
}

extension KernelMemories: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The number as text: `memory of 1 kernel`.
    public var description: String { "memory of \(values.count) kernel\(values.count == 1 ? "" : "s")" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// A value of any type, or none, that is compared with its type.  It prints as that type.
struct Erased: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var value: (any Hashable & Sendable)?

    init(_ value: (any Hashable & Sendable)?) { self.value = value }

    static func == (one: Erased, other: Erased) -> Bool { one.hashable == other.hashable }
    func hash(into hasher: inout Hasher) { hasher.combine(hashable) }
    private var hashable: AnyHashable? { value.map { AnyHashable($0) } }

    var description: String { value.map { "\(type(of: $0))" } ?? "nil" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

/// The kernels of a reader, by identifier.
///
///     var kernels = Kernels.all
///     kernels.register(0x81_0276, DomesticKernel.self)
///     kernels.register(4) { ExpressKernel($0, blockedCards: blockedCards) }
///
/// A dictionary literal of types creates it, too: `[3: Kernel3.self]`.
public struct Kernels: Sendable {
    private struct Registration: Sendable {
        let type: any Kernel.Type
        let make: @Sendable (KernelActivation) -> any Kernel
    }
    private var registrations: [KernelIdentifier: Registration] = [:]

    /// Registers a kernel that is created from its activation alone.  It replaces an earlier one with the identifier.
    public mutating func register<K: ActivatableKernel>(_ identifier: KernelIdentifier, _ type: K.Type) {
        register(identifier) { type.init($0) }
    }

    /// Registers a kernel that a closure creates, such as one that needs more than its activation.  It replaces an earlier one
    /// with the identifier.
    ///
    /// - Parameters:
    ///   - identifier: the kernel, as tag 9F2A names it.
    ///   - make: creates the kernel; called for each activation.
    public mutating func register<K: Kernel>(
        _ identifier: KernelIdentifier, make: @escaping @Sendable (KernelActivation) -> K
    ) {
        registrations[identifier] = Registration(type: K.self, make: make)
    }

    /// The identifiers of the kernels, in ascending order.
    public var identifiers: [KernelIdentifier] { registrations.keys.sorted { $0.rawValue < $1.rawValue } }

    public func contains(_ identifier: KernelIdentifier) -> Bool { registrations[identifier] != nil }

    /// The type of a kernel; nil if there is none with the identifier.
    public subscript(identifier: KernelIdentifier) -> (any Kernel.Type)? { registrations[identifier]?.type }

    /// Creates the activation's kernel.
    ///
    /// - Returns: nil if there is none with its identifier.
    func make(_ activation: KernelActivation) -> (any Kernel)? { registrations[activation.kernel]?.make(activation) }
}

extension Kernels: ExpressibleByDictionaryLiteral {
    /// Creates the kernels; of two with one identifier the last counts.
    public init(dictionaryLiteral elements: (KernelIdentifier, any ActivatableKernel.Type)...) {
        for (identifier, type) in elements { register(identifier, type) }
    }
}

extension CodingUserInfoKey {
    /// The key of the ``Kernels`` whose options a decoder of a ``ReaderConfiguration`` knows; without it ``Kernels/all``.
    public static let kernels: CodingUserInfoKey = {
        guard let key = CodingUserInfoKey(rawValue: "EMVContactless.kernels") else {
            preconditionFailure("it has a name")
        }
        return key
    }()
}

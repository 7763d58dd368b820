/// The kernels of this module.
public enum Kernels {
    /// All kernels, by identifier.
    public static let all: [KernelIdentifier: any Kernel.Type] = [2: Kernel2.self, 3: Kernel3.self]
}

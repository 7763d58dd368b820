/// The kernels that exist here.
public enum Kernels {
    /// Every one, by its identifier.
    public static let all: [KernelIdentifier: any Kernel.Type] = [3: Kernel3.self]
}

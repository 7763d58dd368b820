/// The kernels that exist here.
public enum Kernels {
    /// Every one, by its identifier.
    public static let all: [KernelIdentifier: any Kernel.Type] = [2: Kernel2.self, 3: Kernel3.self]
}

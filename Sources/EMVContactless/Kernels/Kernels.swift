extension Kernels {
    /// The kernels of this module.
    public static let all: Kernels = [2: Kernel2.self, 3: Kernel3.self]
}

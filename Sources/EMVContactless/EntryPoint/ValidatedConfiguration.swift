extension ReaderConfiguration {
    /// A valid configuration, with the kernels that it is valid for: ``validated(for:)`` creates one.
    @dynamicMemberLookup
    public struct Validated: Sendable {
        public let configuration: ReaderConfiguration
        public let kernels: Kernels

        init(unchecked configuration: ReaderConfiguration, for kernels: Kernels) {
            self.configuration = configuration
            self.kernels = kernels
        }

        /// Returns a setting of the configuration.
        public subscript<Value>(dynamicMember member: KeyPath<ReaderConfiguration, Value>) -> Value {
            configuration[keyPath: member]
        }
    }

    /// Validates the configuration, which is the only way to an ``EntryPoint``.
    ///
    /// - Parameter kernels: the kernels of the reader, each of which checks its combinations.  A combination whose kernel is
    ///   missing is valid; Entry Point passes it over.
    /// - Throws: ``ConfigurationError`` at the first error.
    @discardableResult
    public func validated(for kernels: Kernels = .all) throws(ConfigurationError) -> Validated {
        try validate(for: kernels)
        return Validated(unchecked: self, for: kernels)
    }
}

extension ReaderConfiguration.Validated {
    /// The configuration ``ReaderConfiguration/test`` with the kernels of this module.
    public static let test = Self(unchecked: .test, for: .all)
    /// The configuration ``ReaderConfiguration/unattendedTest`` with the kernels of this module.
    public static let unattendedTest = Self(unchecked: .unattendedTest, for: .all)
}

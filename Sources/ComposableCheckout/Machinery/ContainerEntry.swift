import Waiting

/// A dependency that is being made, as an element of a task's path.
final class BuildStep: Sendable {
    let key: ComposableContainer.Key
    let container: ComposableContainer
    /// True if other tasks may wait for the same instance.
    let isShared: Bool
    private let state = Lock(true)

    init(_ key: ComposableContainer.Key, _ container: ComposableContainer, isShared: Bool) {
        (self.key, self.container, self.isShared) = (key, container, isShared)
    }

    /// True while the factory runs.  A task that a factory has left behind inherits the path, and may resolve anything
    /// afterward.
    var isOpen: Bool { state.withLock { $0 } }

    func close() { state.withLock { $0 = false } }
}

/// A registration of any type.
protocol ContainerEntry: AnyObject {
    var retention: ComposableContainer.Retention { get }
    var isMade: Bool { get }
    /// The same registration without an instance.
    var renewed: any ContainerEntry { get }
}

/// A registration, used by its container alone.
final class Entry<T: Sendable>: ContainerEntry {
    let retention: ComposableContainer.Retention
    let make: @Sendable (ComposableContainer) async throws -> T
    /// The task that makes the instance.
    var build: (step: BuildStep, task: Task<T, any Error>)?
    private var strong: T?
    private weak var object: AnyObject?

    init(
        _ retention: ComposableContainer.Retention,
        _ make: @escaping @Sendable (ComposableContainer) async throws -> T
    ) {
        (self.retention, self.make) = (retention, make)
    }

    var instance: T? { strong ?? object.flatMap { $0 as? T } }
    var isMade: Bool { instance != nil }
    var renewed: any ContainerEntry { Entry(retention, make) }

    /// Keeps an instance.
    ///
    /// - Returns: false if it is to be kept weakly, and is no object.  Only the instance tells: the type may be a protocol,
    ///   and a cast to an object succeeds for any value.
    func keep(_ instance: T) -> Bool {
        switch retention {
        case .transient: return true
        case .singleton: strong = instance
        case .weak:
            guard Swift.type(of: instance as Any) is AnyClass else { return false }
            object = instance as AnyObject
        }
        return true
    }
}

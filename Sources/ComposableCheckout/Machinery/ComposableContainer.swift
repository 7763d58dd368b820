/// The dependencies of a checkout: each is registered with a factory, and made when it is first needed.
///
///     let container = ComposableContainer()
///     await container.register((any PaymentRepository).self, as: .singleton) { _ in MyPayments() }
///     let payments = try await container.resolve((any PaymentRepository).self)
///
/// A factory resolves what it needs from the container that it is given.  A container has no global instance.
public actor ComposableContainer {
    /// The time for which an instance is kept.
    public enum Retention: String, Sendable, CaseIterable {
        /// Each resolution makes a new one.
        case transient
        /// One is kept as long as the container, or until it is registered anew.
        case singleton
        /// One is kept as long as somebody else keeps it.
        case weak
    }

    /// The type and the name of a dependency.
    struct Key: Hashable, Sendable, CustomStringConvertible {
        let type: ObjectIdentifier
        let name: String?
        let typeName: @Sendable () -> String

        init<T>(_ type: T.Type, _ name: String?) {
            (self.type, self.name, typeName) = (ObjectIdentifier(type), name, { String(reflecting: type) })
        }

        var description: String { typeName() + (name.map { " \"\($0)\"" } ?? "") }

        static func == (a: Key, b: Key) -> Bool { a.type == b.type && a.name == b.name }
        func hash(into hasher: inout Hasher) {
            hasher.combine(type)
            hasher.combine(name)
        }
    }

    /// A registration, and one in its place for a test.
    private struct Slot {
        var entry: any ContainerEntry
        var override: (any ContainerEntry)?
        var resolutions = 0
        var present: any ContainerEntry { override ?? entry }
    }

    /// The container of which this is a scope, and which has it.
    private weak var parent: ComposableContainer?
    private var slots: [Key: Slot] = [:]
    private var order: [Key] = []
    private var scopes: [String: ComposableContainer] = [:]
    /// The builds that a shared build waits for.
    private var waits: [ObjectIdentifier: [BuildStep]] = [:]

    /// Creates an empty container.
    public init() { parent = nil }

    private init(parent: ComposableContainer) { self.parent = parent }

    // MARK: Registration

    /// Registers a dependency, in place of an earlier registration of the same type and name.
    ///
    /// - Parameters:
    ///   - type: the type by which it is resolved; may be a protocol: `(any PaymentRepository).self`.
    ///   - name: distinguishes several of one type.
    ///   - retention: the time for which an instance is kept.
    ///   - make: the factory; receives the container that the registration is in.
    public func register<T: Sendable>(
        _ type: T.Type, named name: String? = nil, as retention: Retention = .transient,
        _ make: @escaping @Sendable (ComposableContainer) async throws -> T
    ) {
        let key = Key(type, name)
        if slots[key] == nil { order.append(key) }
        slots[key] = Slot(entry: Entry(retention, make))
    }

    /// Removes a registration and its instance.
    public func unregister<T>(_ type: T.Type, named name: String? = nil) {
        let key = Key(type, name)
        slots[key] = nil
        order.removeAll { $0 == key }
    }

    /// True if a dependency is registered here, or around this scope.
    public func isRegistered<T>(_ type: T.Type, named name: String? = nil) async -> Bool {
        if slots[Key(type, name)] != nil { return true }
        return await parent?.isRegistered(type, named: name) ?? false
    }

    /// Puts another factory in the place of a registration, until ``removeOverrides()``: for tests.
    ///
    /// - Throws: ``ContainerError/notRegistered(_:suggestions:)`` if there is nothing to replace.
    public func override<T: Sendable>(
        _ type: T.Type, named name: String? = nil, as retention: Retention = .singleton,
        _ make: @escaping @Sendable (ComposableContainer) async throws -> T
    ) throws(ContainerError) {
        let key = Key(type, name)
        guard slots[key] != nil else { throw notRegistered(key) }
        slots[key]?.override = Entry(retention, make)
    }

    /// Puts all registrations back that tests replaced, with the instances that they had.
    public func removeOverrides() { for key in order { slots[key]?.override = nil } }

    /// Releases all instances; the registrations stay.
    ///
    /// - Parameter keeping: types whose instances stay.
    public func reset(keeping: [Any.Type] = []) {
        let kept = Set(keeping.map { ObjectIdentifier($0) })
        for key in order where !kept.contains(key.type) {
            guard var slot = slots[key] else { continue }
            slot.entry = slot.entry.renewed
            slot.override = slot.override?.renewed
            slots[key] = slot
        }
    }

    // MARK: Scopes

    /// Returns the container of a scope, such as one checkout; creates it if there is none.
    ///
    /// It resolves its own registrations first, and then those of this container, which it does not keep.
    public func scope(_ name: String) -> ComposableContainer {
        if let scope = scopes[name] { return scope }
        let scope = ComposableContainer(parent: self)
        scopes[name] = scope
        return scope
    }

    /// Releases a scope with its registrations and instances.
    ///
    /// - Returns: false if there is none.
    @discardableResult public func endScope(_ name: String) -> Bool { scopes.removeValue(forKey: name) != nil }

    // MARK: Resolution

    /// The builds that the present task is inside of, from the outermost.
    @TaskLocal private static var path: [BuildStep] = []

    /// Returns an instance.
    ///
    /// However many tasks resolve one singleton at once, it is made once.  Canceling a task does not end the factory.
    ///
    /// - Throws: ``ContainerError``.  After a failure the next resolution tries again.
    public func resolve<T: Sendable>(
        _ type: T.Type = T.self, named name: String? = nil
    ) async throws(ContainerError) -> T {
        let key = Key(type, name)
        slots[key]?.resolutions += 1
        guard let entry = slots[key]?.present as? Entry<T> else {
            guard let parent else { throw notRegistered(key) }
            return try await parent.resolve(type, named: name)
        }
        let path = Self.path
        if let instance = entry.instance { return instance }
        if let first = path.firstIndex(where: { $0.isOpen && $0.container === self && $0.key == key }) {
            throw .circular(path: path[first...].map(\.key.description) + ["\(key)"])
        }
        do {
            guard entry.retention != .transient else {
                let step = BuildStep(key, self, isShared: false)
                defer { step.close() }
                return try await Self.$path.withValue(path + [step]) { try await entry.make(self) }
            }
            return try await shared(entry, key, path)
        } catch let error as ContainerError {
            throw error
        } catch {
            throw .factoryFailed("\(key)", error)
        }
    }

    /// Makes an instance that is kept, or waits for the task that makes it.
    private func shared<T: Sendable>(_ entry: Entry<T>, _ key: Key, _ path: [BuildStep]) async throws -> T {
        // The build that will wait: two singletons that need each other may be made by two tasks, in whose paths the
        // other is not.
        let waiter = path.last { $0.isOpen && $0.isShared }
        if let build = entry.build {
            if let waiter, let way = way(from: build.step, to: waiter) {
                throw ContainerError.circular(path: ([waiter] + way).map(\.key.description))
            }
            begin(waiter, build.step)
            defer { end(waiter, build.step) }
            return try await build.task.value
        }
        let step = BuildStep(key, self, isShared: true)
        let task = Task {
            let instance = try await Self.$path.withValue(path + [step]) { try await entry.make(self) }
            guard entry.keep(instance) else { throw ContainerError.weakUnsupported("\(key)") }
            return instance
        }
        entry.build = (step, task)
        begin(waiter, step)
        defer {
            end(waiter, step)
            step.close()
            entry.build = nil
        }
        return try await task.value
    }

    private func begin(_ waiter: BuildStep?, _ step: BuildStep) {
        if let waiter { waits[ObjectIdentifier(waiter), default: []].append(step) }
    }

    private func end(_ waiter: BuildStep?, _ step: BuildStep) {
        guard let id = waiter.map({ ObjectIdentifier($0) }), var steps = waits[id] else { return }
        if let index = steps.firstIndex(where: { $0 === step }) { steps.remove(at: index) }
        waits[id] = steps.isEmpty ? nil : steps
    }

    /// The builds by which `step` waits for `target`, both included; nil if it does not.
    private func way(from step: BuildStep, to target: BuildStep) -> [BuildStep]? {
        if step === target { return [step] }
        for next in waits[ObjectIdentifier(step)] ?? [] {
            if let way = way(from: next, to: target) { return [step] + way }
        }
        return nil
    }

    /// Returns an instance of each registration of a type, whatever its name: first those of this container, in the order
    /// of registration, then those of the containers around it that have other names.
    ///
    /// - Throws: the first ``ContainerError``.
    public func resolveAll<T: Sendable>(_ type: T.Type = T.self) async throws(ContainerError) -> [T] {
        var instances: [T] = []
        for name in await names(of: ObjectIdentifier(type)) {
            instances.append(try await resolve(type, named: name))
        }
        return instances
    }

    private func names(of type: ObjectIdentifier) async -> [String?] {
        let own = order.filter { $0.type == type }.map(\.name)
        let outer = await parent?.names(of: type) ?? []
        return own + outer.filter { !own.contains($0) }
    }

    private func notRegistered(_ key: Key) -> ContainerError {
        let word = key.typeName().split(separator: ".").last ?? ""
        let similar = order.filter { $0.type == key.type || $0.typeName().hasSuffix(word) }
        return .notRegistered("\(key)", suggestions: similar.prefix(5).map(\.description))
    }

    // MARK: Diagnostics

    /// The present registrations.
    public var diagnostics: ContainerDiagnostics {
        ContainerDiagnostics(
            registrations: order.compactMap { key in
                slots[key].map { slot in
                    .init(
                        dependency: key.description, retention: slot.present.retention, isMade: slot.present.isMade,
                        isOverridden: slot.override != nil, resolutions: slot.resolutions)
                }
            },
            scopes: scopes.keys.sorted())
    }
}

/// A container's registrations, for a log or a test.
public struct ContainerDiagnostics: Hashable, Sendable {
    public struct Registration: Hashable, Sendable {
        /// The type and the name.
        public let dependency: String
        public let retention: ComposableContainer.Retention
        /// True if there is an instance.
        public let isMade: Bool
        public let isOverridden: Bool
        /// The number of times that it was asked for.
        public let resolutions: Int
    }

    /// In the order of registration.
    public let registrations: [Registration]
    /// The names of the scopes.
    public let scopes: [String]

    /// The registrations that nobody has asked for.
    public var unused: [String] { registrations.filter { $0.resolutions == 0 }.map(\.dependency) }
}

extension ContainerDiagnostics: CustomStringConvertible {
    /// A line for each registration.
    public var description: String {
        registrations.map { registration in
            "\(registration.dependency): \(registration.retention.rawValue), asked for \(registration.resolutions) times"
                + (registration.isMade ? ", made" : "") + (registration.isOverridden ? ", overridden" : "")
        }.joined(separator: "\n")
    }
}

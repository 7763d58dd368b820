import ComposableCheckout
import Synchronization
import TestSupport
import Testing
import Waiting

private protocol Service: Sendable { var number: Int { get } }
private protocol SharedService: AnyObject, Sendable { var number: Int { get } }
private struct Plain: Service { let number: Int }
private final class Object: Service, SharedService {
    let number: Int
    init(_ number: Int = 0) { self.number = number }
}
private struct First: Sendable {}
private struct Second: Sendable {}
private struct Third: Sendable {}
private struct Broken: Error {}

private final class Count: Sendable {
    private let value = Atomic(0)
    var next: Int { value.add(1, ordering: .relaxed).newValue }
    var now: Int { value.load(ordering: .relaxed) }
}

@Suite("D8 container", .simulatedTime) struct ContainerTests {
    let container = ComposableContainer()
    private let count = Count()

    private func error(_ body: () async throws -> some Sendable) async -> ContainerError? {
        do {
            _ = try await body()
            return nil
        } catch { return error as? ContainerError }
    }

    @Test("D8 transient: each resolution makes one; singleton: one; weak: one as long as somebody keeps it")
    func retention() async throws {
        await container.register(Object.self, named: "transient") { [count] _ in Object(count.next) }
        await container.register(Object.self, named: "singleton", as: .singleton) { [count] _ in Object(count.next) }
        await container.register(Object.self, named: "weak", as: .weak) { [count] _ in Object(count.next) }
        var numbers: [Int] = []
        for _ in 0..<2 { numbers.append(try await container.resolve(Object.self, named: "transient").number) }
        for _ in 0..<2 { numbers.append(try await container.resolve(Object.self, named: "singleton").number) }
        #expect(numbers == [1, 2, 3, 3])
        do {
            let kept = try await container.resolve(Object.self, named: "weak")
            let same = try await container.resolve(Object.self, named: "weak")
            #expect(kept === same && kept.number == 4)
            withExtendedLifetime(kept) {}
        }
        #expect(try await container.resolve(Object.self, named: "weak").number == 5)
    }

    @Test("D8 weak registration of a protocol keeps an object, and refuses a value")
    func weakProtocols() async throws {
        await container.register((any SharedService).self, as: .weak) { [count] _ in Object(count.next) }
        await container.register((any Service).self, as: .weak) { [count] _ in Object(count.next) }
        await container.register((any Service).self, named: "value", as: .weak) { _ in Plain(number: 0) }
        let shared = try await container.resolve((any SharedService).self)
        let other = try await container.resolve((any SharedService).self)
        #expect(shared === other)
        let open = try await container.resolve((any Service).self)
        #expect(try await container.resolve((any Service).self).number == open.number)
        withExtendedLifetime((shared, open)) {}
        let refused = await error { try await container.resolve((any Service).self, named: "value") }
        guard case .weakUnsupported(let name) = refused else {
            Issue.record("\(String(describing: refused))")
            return
        }
        #expect(name.contains("Service") && name.contains("\"value\""))
    }

    @Test("D8 names distinguish registrations of one type; resolveAll returns all in order")
    func names() async throws {
        await container.register((any Service).self) { _ in Plain(number: 1) }
        await container.register((any Service).self, named: "b") { _ in Plain(number: 2) }
        await container.register((any Service).self, named: "a") { _ in Plain(number: 3) }
        #expect(try await container.resolveAll((any Service).self).map(\.number) == [1, 2, 3])
        await container.register((any Service).self, named: "b") { _ in Plain(number: 4) }
        #expect(try await container.resolveAll((any Service).self).map(\.number) == [1, 4, 3])
        await container.unregister((any Service).self)
        #expect(try await container.resolveAll((any Service).self).map(\.number) == [4, 3])
        let missing = await error { try await container.resolve((any Service).self) }
        guard case .notRegistered(_, let suggestions) = missing else {
            Issue.record("\(String(describing: missing))")
            return
        }
        #expect(suggestions.count == 2 && suggestions.allSatisfy { $0.contains("Service") })
    }

    @Test("D8 a scope resolves its own registrations first, and ends with its instances")
    func scopes() async throws {
        await container.register(Plain.self) { _ in Plain(number: 1) }
        await container.register((any Service).self, named: "outer") { _ in Plain(number: 5) }
        let scope = await container.scope("checkout")
        #expect(try await scope.resolve(Plain.self).number == 1)
        await scope.register(Plain.self) { _ in Plain(number: 2) }
        await scope.register((any Service).self, named: "inner") { _ in Plain(number: 6) }
        await scope.register(Object.self, as: .singleton) { [count] _ in Object(count.next) }
        let same = await container.scope("checkout")
        #expect(try await same.resolve(Plain.self).number == 2)
        #expect(try await container.resolve(Plain.self).number == 1)
        #expect(try await scope.resolveAll((any Service).self).map(\.number) == [6, 5])
        weak var instance: Object?
        do { instance = try await scope.resolve(Object.self) }
        #expect(instance != nil)
        #expect(await container.diagnostics.scopes == ["checkout"])
        #expect(await container.endScope("checkout"))
        #expect(await !container.endScope("checkout"))
        let next = await container.scope("checkout")
        #expect(try await next.resolve(Plain.self).number == 1)
        // A container goes with the scopes that it has.
        weak var gone: ComposableContainer?
        do {
            let other = ComposableContainer()
            _ = await other.scope("open")
            gone = other
        }
        #expect(gone == nil)
    }

    @Test("D8 a test overrides a registration and puts it back with its instance; reset releases instances")
    func overrides() async throws {
        await container.register(Object.self, as: .singleton) { [count] _ in Object(count.next) }
        let real = try await container.resolve(Object.self)
        try await container.override(Object.self) { _ in Object(99) }
        #expect(try await container.resolve(Object.self).number == 99)
        #expect(await container.diagnostics.registrations.map(\.isOverridden) == [true])
        await container.removeOverrides()
        #expect(try await container.resolve(Object.self) === real)
        await container.reset(keeping: [Object.self])
        #expect(try await container.resolve(Object.self) === real)
        await container.reset()
        #expect(try await container.resolve(Object.self).number == 2)
        let nothing = await error { try await container.override(Plain.self) { _ in Plain(number: 0) } }
        guard case .notRegistered = nothing else {
            Issue.record("\(String(describing: nothing))")
            return
        }
    }

    @Test("D8 a hundred tasks resolve one suspending singleton, which is made once, without a false alarm")
    func concurrent() async throws {
        await container.register(Plain.self, as: .singleton) { [count] _ in
            try await Time.sleep(for: .milliseconds(20))
            return Plain(number: count.next)
        }
        await container.register(Object.self, as: .singleton) { container in
            Object(try await container.resolve(Plain.self).number)
        }
        let numbers = try await withThrowingTaskGroup(of: Int.self) { [container] group in
            for index in 0..<100 {
                group.addTask {
                    index.isMultiple(of: 2)
                        ? try await container.resolve(Plain.self).number
                        : try await container.resolve(Object.self).number
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(numbers == Array(repeating: 1, count: 100))
        #expect(count.now == 1)
    }

    @Test(
        "D8 a dependency that needs itself is an error with the path", arguments: ComposableContainer.Retention.allCases
    )
    func circular(retention: ComposableContainer.Retention) async throws {
        await container.register(First.self, as: retention) { container in
            _ = try await container.resolve(Second.self)
            return First()
        }
        await container.register(Second.self, as: retention) { container in
            _ = try await container.resolve(Third.self)
            return Second()
        }
        await container.register(Third.self, as: retention) { container in
            _ = try await container.resolve(Second.self)
            return Third()
        }
        let found = await error { try await container.resolve(First.self) }
        guard case .circular(let path) = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        #expect(path.map { $0.split(separator: ".").last } == ["Second", "Third", "Second"])
    }

    @Test("D8 singletons that need each other are found though two tasks make them", .timeLimit(.minutes(1)))
    func mutual() async throws {
        await container.register(First.self, as: .singleton) { container in
            try await Time.sleep(for: .milliseconds(30))
            _ = try await container.resolve(Second.self)
            return First()
        }
        await container.register(Second.self, as: .singleton) { container in
            try await Time.sleep(for: .milliseconds(30))
            _ = try await container.resolve(First.self)
            return Second()
        }
        async let first = error { try await container.resolve(First.self) }
        async let second = error { try await container.resolve(Second.self) }
        for found in await [first, second] {
            guard case .circular(let path) = found else {
                Issue.record("\(String(describing: found))")
                continue
            }
            #expect(path.count == 3 && path.first == path.last)
        }
    }

    @Test("D8 a task that a factory leaves behind may resolve the same type later")
    func afterward() async throws {
        let later = Mutex<Task<Int, any Error>?>(nil)
        await container.register(Plain.self, as: .singleton) { container in
            let task = Task {
                try await Time.sleep(for: .milliseconds(20))
                return try await container.resolve(Plain.self).number
            }
            later.withLock { $0 = task }
            return Plain(number: 7)
        }
        await container.register(Object.self) { Object(try await $0.resolve(Plain.self).number) }
        #expect(try await container.resolve(Object.self).number == 7)
        let task = try #require(later.withLock { $0 })
        #expect(try await task.value == 7)
    }

    @Test("D8 a transient dependency may be made again by a task that its own factory has left behind")
    func transientAfterward() async throws {
        let later = Mutex<Task<Int, any Error>?>(nil)
        await container.register(Plain.self) { [count] container in
            let number = count.next
            if number == 1 {
                let task = Task {
                    try await Time.sleep(for: .milliseconds(50))
                    return try await container.resolve(Plain.self).number
                }
                later.withLock { $0 = task }
            }
            return Plain(number: number)
        }
        #expect(try await container.resolve(Plain.self).number == 1)
        let task = try #require(later.withLock { $0 })
        #expect(try await task.value == 2)
    }

    @Test("D8 a factory's error names the dependency, and the next resolution tries again")
    func failures() async throws {
        await container.register(Plain.self, as: .singleton) { [count] _ in
            let number = count.next
            guard number > 1 else { throw Broken() }
            return Plain(number: number)
        }
        let failure = await error { try await container.resolve(Plain.self) }
        guard case .factoryFailed(let name, let reason) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(name.hasSuffix("Plain") && reason is Broken)
        #expect(try await container.resolve(Plain.self).number == 2)
        let diagnostics = await container.diagnostics
        #expect(diagnostics.registrations.map(\.resolutions) == [2])
        #expect(diagnostics.registrations.map(\.isMade) == [true])
        #expect(diagnostics.unused.isEmpty)
    }
}

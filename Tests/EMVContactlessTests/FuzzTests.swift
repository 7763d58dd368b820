import EMVContactless
import SmartCard
import Synchronization
import TestSupport
import Testing

/// The fuzzer's targets with its published inputs, Fuzz/corpora, and with what little changes make of them: the same in
/// every run, in the fast tier some of them.  A trap ends the test process.
@Suite(.computing) struct FuzzTests {
    private enum Target: String, CaseIterable {
        case transaction, tlv
        case cardInspector = "card-inspector"
        case cardFile = "card-file"

        func take(_ input: [UInt8]) async throws {
            switch self {
            case .transaction: try FuzzTargets.transaction(input)
            case .tlv: try FuzzTargets.tlv(input)
            case .cardInspector: await FuzzTargets.cardInspector(input)
            case .cardFile: FuzzTargets.cardFile(input)
            }
        }
    }

    @Test(.timeLimit(.minutes(20)), arguments: Target.allCases)
    private func publishedInputs(_ target: Target) async throws {
        let corpus = try FuzzCorpus(target.rawValue)
        #expect(corpus.inputs.count > 10)
        for input in Tier.few(corpus.inputs + corpus.changed(1_000), 100) { await expectNothing(input, target) }
    }

    private func expectNothing(_ input: [UInt8], _ target: Target) async {
        do { try await target.take(input) } catch { Issue.record("\(error), for \(input.hex)") }
    }

    @Test func theFirstBytesChooseTheTransaction() {
        for neutral in [[], [0], [0, 0, 0, 0, 0xFF]] as [[UInt8]] {
            let bench = FuzzTargets.Bench(neutral)
            #expect(bench.kind == .purchase && bench.amount == 12_34 && !bench.startsAtB)
            #expect(bench.configuration == .test && bench.card == nil)
        }
        let other = FuzzTargets.Bench([0x0F, 0x04, 0x03, 0x01])
        #expect(other.kind == .refund && other.amount == 50_00 && other.startsAtB)
        expectEqual(other.configuration.terminal[0x9F35], [0x14])
        expectEqual(other.configuration.combinations[0].floorLimit, 10_000_00)
        expectEqual((other.configuration.combinations[0].options as? Kernel3.Options)?.checksUsageAtATM, true)
        expectEqual(other.configuration.combinations[0].terminalTransactionQualifiers?.bytes.first, 0x35)
        expectEqual(Set((0...3).map { FuzzTargets.Bench([$0]).kind }), Set(Transaction.Kind.allCases))
        #expect((1...20).allSatisfy { FuzzTargets.Bench([0, $0 << 3]).card != nil })
    }

    /// Those for transactions take Kernel 2 to each of its states.
    @Test func publishedInputsReachEveryState() throws {
        for input in try FuzzCorpus("transaction").inputs {
            try FuzzTargets.transaction(input, kernels: [2: WatchedKernel2.self, 3: Kernel3.self])
        }
        expectEqual(WatchedKernel2.states.withLock { $0 }, Set(Kernel2.State.allCases))
    }

    /// What is refused as a finding would be one.
    @Test func findings() {
        expectEqual("\(FuzzTargets.Finding(description: "no end"))", "no end")
        #expect(FuzzTargets.maximumCommands < EntryPoint.maximumCommands * EntryPoint.maximumActivations * 2)
    }
}

/// Kernel 2, which notes the states that it is in.
private struct WatchedKernel2: ActivatableKernel {
    typealias Options = Kernel2.Options
    static let mandatoryData = Kernel2.mandatoryData
    static let requestableData = Kernel2.requestableData
    static let advertisedData = Kernel2.advertisedData
    static let states = Mutex<Set<Kernel2.State>>([])
    private var kernel: Kernel2

    init(_ activation: KernelActivation) {
        kernel = Kernel2(activation)
        note()
    }

    mutating func next(_ event: KernelEvent) -> KernelStep {
        defer { note() }
        return kernel.next(event)
    }

    private func note() { Self.states.withLock { _ = $0.insert(kernel.state) } }
}

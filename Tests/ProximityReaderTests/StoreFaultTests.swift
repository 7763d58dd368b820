import Foundation
import Glibc
import ProximityReader
import SmartCard
import TestSupport
import Testing

/// What power failures, full disks, other programs and people do to a store.
@Suite(.timeLimit(.minutes(90))) struct StoreFaultTests {
    /// `STORE_KILLS=1000` for as many.
    private static let kills =
        ProcessInfo.processInfo.environment["STORE_KILLS"].flatMap(Int.init) ?? Tier.rounds(6, thorough: 40)

    /// The seed of a worker that is called the same in several rounds.
    private static func seed(_ round: Int) -> [String: String] { ["SEED": "\(Seed.value &+ UInt64(round))"] }

    @Test("a program is killed at any moment: no payment is lost, and none is charged twice")
    func killed() async throws {
        let bench = try StoreBench()
        var lines: [Substring] = []
        var next = 0
        var random = Seed.generator()
        for round in 0..<Self.kills {
            let program = try Program([Program.built("store-worker"), bench.folder.path, "\(next)"])
            // Now and then before it has opened the store.
            if round % 8 != 0 { try await program.wait(for: "its start") { $0.output.contains("opened") } }
            try await Task.sleep(for: .microseconds(Int.random(in: 0..<100_000, using: &random)))
            program.signal(SIGKILL)
            let outcome = try await program.outcome()
            #expect(outcome.status == 128 + SIGKILL, "\(outcome)")
            lines += outcome.output.split(separator: "\n")
            // More than can be stored in the time.
            next += 10_000
        }
        let drained = try await Program.run([Program.built("store-worker"), bench.folder.path, "\(next)", "drain"])
        #expect(drained.status == 0, "\(drained)")

        let (stored, withdrawn) = (Self.taps("stored", in: lines), Set(Self.taps("withdrawn", in: lines)))
        let service = try String(contentsOf: bench.file("service"), encoding: .utf8).split(separator: "\n")
        let charged = Self.taps("charged", in: service)
        #expect(stored.count > Self.kills)
        #expect(Set(charged).count == charged.count, "charged twice")
        #expect(Set(charged).isDisjoint(with: withdrawn), "charged, though taken back")
        // What was being taken back may be gone or not.
        let lost = Set(stored).subtracting(charged).subtracting(Self.taps("withdrawing", in: lines))
        #expect(lost.isEmpty)
    }

    @Test("a program is killed while it makes the store: the next one finds a store, or makes it")
    func killedAtCreation() async throws {
        var random = Seed.generator()
        for round in 0..<Tier.rounds(2, thorough: max(8, Self.kills / 10)) {
            let bench = try StoreBench()
            let program = try Program(
                [Program.built("store-worker"), bench.folder.path, "0", "fill", "1"], environment: Self.seed(round))
            try await Task.sleep(for: .microseconds(Int.random(in: 0..<60_000, using: &random)))
            program.signal(SIGKILL)
            let outcome = try await program.outcome()
            let drained = try await Program.run(
                [Program.built("store-worker"), bench.folder.path, "1", "drain"], environment: Self.seed(round))
            #expect(drained.status == 0, "\(round): \(drained)")
            let service = (try? String(contentsOf: bench.file("service"), encoding: .utf8)) ?? ""
            if outcome.output.contains("stored tap-0\n"), !outcome.output.contains("withdraw") {
                #expect(service.contains("charged tap-0\n"), "\(round)")
            }
        }
    }

    /// `STORE_FAULTS=1` for every one of them.
    private static let stride =
        ProcessInfo.processInfo.environment["STORE_FAULTS"].flatMap(Int.init) ?? Tier.rounds(51, thorough: 17)

    @Test(
        "every write of a program fails once, or is its last: no payment is lost, and none is charged twice",
        .enabled(if: Program.isInstalled("strace"), "strace is not installed"),
        arguments: Tier.first(
            ["signal=KILL", "error=ENOSPC and so on"], then: ["error=EIO", "error=ENOSPC", "error=EIO and so on"]))
    func everyWrite(_ fault: String) async throws {
        let isOnce = !fault.hasSuffix(" and so on")
        let fault = fault.split(separator: " ")[0]
        // Of a disk that takes nothing more, nobody can say whether it keeps what it did not confirm.
        let calls = isOnce ? Self.calls : "pwrite64,write"
        var random = Seed.generator(fault)
        var count = Int.random(in: 1...Self.stride, using: &random)
        var ends = false
        while !ends {
            let bench = try StoreBench()
            let traced = try await Program.run([
                "strace", "-f", "-qq", "-o", bench.file("log").path, "-P", bench.file("store").path, "-P",
                bench.file("store/store.sqlite").path, "-P", bench.file("store/store.sqlite-wal").path, "-P",
                bench.file("store/store.head").path, "-P", bench.file("store/store.head.new").path, "-P",
                bench.file("store/store.key").path, "-P", bench.file("store/store.key.new").path, "-e",
                "trace=\(calls)", "-e", "inject=\(calls):\(fault):when=\(count)\(isOnce ? "" : "+")",
                Program.built("store-worker"), bench.folder.path, "0", "script",
            ])
            let log = try String(contentsOf: bench.file("log"), encoding: .utf8)
            ends = !log.contains("(INJECTED)") && !log.contains("killed by SIGKILL")
            #expect(!ends || traced.output.hasSuffix("done\n"), "\(traced)")
            let lines = traced.output.split(separator: "\n")
            let drained = try await Program.run(
                [Program.built("store-worker"), bench.folder.path, "100", "drain"], environment: Self.seed(count))
            #expect(drained.status == 0, "\(fault) \(count): \(traced) \(drained)")
            let service = (try? String(contentsOf: bench.file("service"), encoding: .utf8)) ?? ""
            let charged = Self.taps("charged", in: service.split(separator: "\n"))
            let context = "\(fault) at write \(count): \(traced.output) \(service)"
            #expect(Set(charged).count == charged.count, "charged twice: \(context)")
            let lost = Set(Self.taps("stored", in: lines)).subtracting(charged)
                .subtracting(Self.taps("withdrawing", in: lines))
            #expect(lost.isEmpty, "lost: \(context)")
            #expect(Set(charged).isDisjoint(with: Self.taps("withdrawn", in: lines)), "\(context)")
            #expect(Set(charged).isDisjoint(with: Self.taps("refused", in: lines)), "\(context)")
            count += Self.stride
        }
        #expect(count > 60)
    }

    private static let calls = "pwrite64,write,fdatasync,fsync,rename,unlink,ftruncate"

    @Test(
        "where beginning the book anew fails, it goes on as it was: no payment is lost",
        .enabled(if: Program.isInstalled("strace"), "strace is not installed"),
        arguments: Tier.first(["error=EIO"], then: ["error=ENOSPC"]))
    func everyWriteOfCompaction(_ fault: String) async throws {
        let due = try StoreBench()
        let store = try await due.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 2)
        for _ in 0..<140 {
            try await store.willSend(batch: batch.id)
            try await store.wasRefused(batch: batch.id)
        }
        #expect(try await store.entryCount() > 256 + 4 * 3)
        await store.close()
        var random = Seed.generator(fault)
        let stride = min(Self.stride, Tier.rounds(8, thorough: 4))
        var count = Int.random(in: 1...stride, using: &random)
        var (ends, failures) = (false, 0)
        while !ends {
            let bench = try StoreBench()
            try FileManager.default.copyItem(at: due.folder, to: bench.file("store"))
            let paths = ["", "/store.sqlite", "/store.sqlite-wal", "/store.head", "/store.key", "/store.key.new"]
            let traced = try await Program.run(
                ["strace", "-f", "-qq", "-o", bench.file("log").path]
                    + paths.flatMap { ["-P", bench.file("store").path + $0] }
                    + [
                        "-e", "trace=\(Self.calls)", "-e", "inject=\(Self.calls):\(fault):when=\(count)",
                        Program.built("store-worker"), bench.folder.path, "0", "fill", "4",
                    ])
            ends = try !String(contentsOf: bench.file("log"), encoding: .utf8).contains("(INJECTED)")
            if "\(traced)".contains("store: not compacted") { failures += 1 }
            let drained = try await Program.run(
                [Program.built("store-worker"), bench.folder.path, "100", "drain"], environment: Self.seed(count))
            #expect(drained.status == 0, "\(fault) at write \(count): \(traced) \(drained)")
            let service = try String(contentsOf: bench.file("service"), encoding: .utf8).split(separator: "\n")
            let charged = Self.taps("charged", in: service)
            #expect(Set(charged).count == charged.count, "charged twice: \(fault) at write \(count)")
            let lines = traced.output.split(separator: "\n")
            let lost = Set(Self.taps("stored", in: lines) + ["sealed-a", "sealed-b", "sealed-c"]).subtracting(charged)
                .subtracting(Self.taps("withdrawing", in: lines))
            #expect(lost.isEmpty, "\(fault) at write \(count)")
            count += stride
        }
        #expect(failures > Tier.rounds(0, thorough: 1))
    }

    @Test(
        "a payment whose storing failed, and that turns up nevertheless, is taken back before anything is forwarded",
        .enabled(if: Program.isInstalled("strace"), "strace is not installed"))
    func turnedUp() async throws {
        var found = 0
        let enough = Tier.rounds(1, thorough: 2)
        // strace counts the calls of each thread by itself, and the store's work goes from thread to thread: so which calls fail
        // is not the same every time.
        for count in (0..<200).map({ 5 + $0 % 8 }) {
            let bench = try StoreBench()
            // Written, and not confirmed; and then it can be neither confirmed nor moved.
            let traced = try await Program.run([
                "strace", "-f", "-qq", "-o", bench.file("log").path, "-P", bench.file("store/store.sqlite-wal").path,
                "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=\(count)..\(count + 1)",
                Program.built("store-worker"), bench.folder.path, "0", "script",
            ])
            let turnedUp = "\(traced)".contains("it is taken back")
            if turnedUp { found += 1 }
            let drained = try await Program.run(
                [Program.built("store-worker"), bench.folder.path, "100", "drain"], environment: Self.seed(count))
            #expect(drained.status == 0, "\(count): \(traced) \(drained)")
            let service = (try? String(contentsOf: bench.file("service"), encoding: .utf8)) ?? ""
            let charged = Self.taps("charged", in: service.split(separator: "\n"))
            let refused = Self.taps("refused", in: traced.output.split(separator: "\n"))
            #expect(Set(charged).isDisjoint(with: refused), "\(count): \(traced)")
            if found == enough { break }
        }
        #expect(found == enough)
    }

    private static func taps(_ word: String, in lines: [Substring]) -> [Substring] {
        lines.filter { $0.hasPrefix("\(word) ") }.map { $0.dropFirst(word.count + 1) }
    }

    // MARK: The disk

    @Test(
        "a disk that is full refuses the next payment, and keeps those before",
        .enabled("no mount namespaces", hasMounts))
    func full() async throws {
        let bench = try StoreBench()
        let outcome = try await mounted(
            bench, "worker 0 fill; mount -o remount,size=20m none .; worker 10000 drain && cat service")
        let lines = outcome.output.split(separator: "\n")
        #expect(outcome.status == 0 && lines.contains { $0.hasPrefix("error the disk is full; nothing was stored") })
        let word = { (word: String) in lines.filter { $0.hasPrefix(word) }.map { $0.split(separator: " ")[1] } }
        let withdrawn = Set(word("withdrawn "))
        #expect(word("stored ").count > 10)
        #expect(word("charged ").sorted() == word("stored ").filter { !withdrawn.contains($0) }.sorted(), "\(outcome)")
    }

    @Test(
        "what is stored is forwarded though the disk is full to the last byte",
        .enabled("no mount namespaces", hasMounts), arguments: Tier.first([2500], then: [6000]))
    func forwardedWhenFull(_ kilobytes: Int) async throws {
        let bench = try StoreBench()
        // The payment service has a disk of its own.
        let script = """
            cd "$1" && mkdir store && mount -t tmpfs -o size=\(kilobytes)k none store && worker() { "$0" . "$@"; }
            worker 0 fill
            cat /dev/zero > store/others; df -P store | awk 'END { print "left", $4 }'
            worker 10000 drain && cat service; ls store
            """
        let outcome = try await Program.run(
            [
                "unshare", try #require(await Self.namespace()), "sh", "-c", script, Program.built("store-worker"),
                bench.folder.path,
            ], timeout: .seconds(400))
        let lines = outcome.output.split(separator: "\n")
        #expect(outcome.output.contains("left 0\n"))
        #expect(lines.contains { $0.hasPrefix("error the disk is full; nothing was stored") }, "\(outcome)")
        let withdrawn = Set(Self.taps("withdrawn", in: lines))
        let stored = Self.taps("stored", in: lines).filter { !withdrawn.contains($0) }
        #expect(stored.count > 100)
        let charged = Self.taps("charged", in: lines).sorted()
        #expect(charged == stored.sorted(), "\(lines.last { $0.hasPrefix("error") } ?? "")")
    }

    @Test("a disk that cannot be written refuses with what is wrong", .enabled("no mount namespaces", hasMounts))
    func readOnly() async throws {
        let bench = try StoreBench()
        let outcome = try await mounted(bench, "worker 0 fill; mount -o remount,ro none .; worker 10000 drain")
        let last = try #require(outcome.output.split(separator: "\n").last)
        #expect(outcome.status == 1 && last.hasPrefix("error the store cannot be written"), "\(outcome)")
        #expect(last.contains("Read-only file system"))
    }

    @Sendable private static func hasMounts() async -> Bool { await namespace() != nil }

    private static func namespace() async -> String? {
        for flags in ["-m", "-rm"] where (try? await Program.run(["unshare", flags, "true"]))?.status == 0 {
            return flags
        }
        return nil
    }

    /// Runs `script` in a disk of 2 MB, with the function `worker`.
    private func mounted(_ bench: StoreBench, _ script: String) async throws -> Program.Outcome {
        let start = #"worker() { "$0" . "$@"; }; mount -t tmpfs -o size=2m none "$1" && cd "$1" && "#
        return try await Program.run([
            "unshare", try #require(await Self.namespace()), "sh", "-c", start + "{ \(script); }",
            Program.built("store-worker"), bench.folder.path,
        ])
    }

    @Test(
        "what is stored is on the disk before the program hears of it",
        .enabled(if: Program.isInstalled("strace"), "strace is not installed"),
        .unsanitized(by: .address, .thread, because: "the search for leaks cannot trace what is traced already"))
    func synchronous() async throws {
        let bench = try StoreBench()
        let log = bench.file("log").path
        let traced = try await Program.run([
            "strace", "-f", "-y", "-o", log, "-e", "trace=pwrite64,fdatasync,fsync,write",
            Program.built("store-worker"), bench.folder.path, "0", "fill", "10",
        ])
        #expect(traced.status == 0, "\(traced)")
        let text = try String(contentsOf: bench.file("log"), encoding: .utf8)
        let all = text.split(separator: "\n")
        let opened = try #require(all.firstIndex { $0.contains("\"opened") })
        var isWritten = false
        var count = 0
        for line in all[opened...] {
            if line.contains("pwrite64("), line.contains("store.sqlite-wal") { isWritten = true }
            if line.contains("sync("), line.contains("store.sqlite-wal") { isWritten = false }
            if line.contains("\"stored ") {
                #expect(!isWritten, "\(line)")
                count += 1
            }
        }
        #expect(count == 10 && text.contains("sync("))
    }

    // MARK: Others

    @Test("one program at a time has the store; another is told so when it has waited, or has it after the first")
    func twoPrograms() async throws {
        let bench = try StoreBench()
        let worker = try Program([Program.built("store-worker"), bench.folder.path, "0", "fill"])
        try await worker.wait(for: "its payments") { $0.output.contains("stored tap-9\n") }
        let impatient = RecordStore(folder: bench.file("store"), patience: .milliseconds(200)) { Date() }
        await #expect(throws: StoreFailure.busy) { try await impatient.count() }
        let patient = RecordStore(folder: bench.file("store"), patience: .seconds(120)) { Date() }
        async let found = patient.makeBatch(size: 0)
        worker.signal(SIGKILL)
        let lines = try await worker.outcome().output.split(separator: "\n")
        let kept = Set(try await found.payments.map { Substring($0.paymentCardData) })
        let stored = Set(Self.taps("stored", in: lines)).subtracting(Self.taps("withdrawing", in: lines))
        #expect(stored.count > 5 && stored.isSubset(of: kept), "\(kept)")
        // Only now it is the other's turn to wait.
        await #expect(throws: StoreFailure.busy) { try await impatient.count() }
        await patient.close()
        #expect(try await impatient.count() == kept.count)
    }

    @Test("what a program that was ended has left half written is gone at the next start")
    func leftovers() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("a"))
        await store.close()
        let names = ["store.head.new", "store.key.new", "store.key.old"]
        for name in names {
            #expect(
                FileManager.default.createFile(
                    atPath: bench.file(name).path, contents: Data("half".utf8), attributes: [.posixPermissions: 0o600]))
        }
        #expect(try await bench.store().payments().map(\.id) == ["a"])
        for name in names { #expect(!FileManager.default.fileExists(atPath: bench.file(name).path), "\(name)") }
    }

    @Test("nobody else may read it")
    func modes() async throws {
        let bench = try StoreBench()
        let folder = bench.file("new/store")
        let store = RecordStore(folder: folder) { Date() }
        try await store.add(StoreBench.payment())
        #expect(try FileManager.default.attributesOfItem(atPath: folder.path)[.posixPermissions] as? Int == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(
            names == ["store.head", "store.key", "store.key.lock", "store.reserve", "store.sqlite", "store.sqlite-wal"])
        for name in names {
            let path = folder.appending(path: name).path
            #expect(
                try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600, "\(name)")
        }
    }

    // MARK: Damage

    /// A store with a bit of everything.  While it is open, the write-ahead log is there.
    private func varied() async throws -> (StoreBench, RecordStore) {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        _ = try await store.resolve(bench.verified(bench.claims(for: store.makeBatch(size: 2))))
        for id in ["d", "e", "f"] { try await store.add(StoreBench.payment(id)) }
        try await store.withdrawLast()
        let batch = try await store.makeBatch(size: 2)
        try await store.willSend(batch: batch.id)
        try await store.record(["c": .approved, "d": .unknown])
        return (bench, store)
    }

    /// All that a store says.
    private func account(of store: RecordStore) async throws -> String {
        let batch = try await store.batch()
        var text =
            "\(try await store.payments()) \(try await store.history()) \(String(describing: try await store.preparation()))"
        text += "\(batch?.id ?? "") \(batch?.payments.map { [$0.id, $0.paymentCardData, $0.signature] } ?? [])"
        text += "\(batch?.leafCertificate ?? "") \(batch?.intermediateCertificate ?? [])"
        for id in ["a", "b", "c", "d", "e", "f", "g"] {
            text += " \(String(describing: try await store.state(of: id)))"
        }
        return text
    }

    /// `STORE_FLIPS=100000` for more.
    private static let flips =
        ProcessInfo.processInfo.environment["STORE_FLIPS"].flatMap(Int.init) ?? Tier.rounds(40, thorough: 400)

    @Test("a bit that is changed in any file is found out, or changes nothing of what the store says")
    func tampering() async throws {
        let (bench, opened) = try await varied()
        var store: RecordStore? = opened
        let before = try await account(of: #require(store))
        let copies = [bench.file("open"), bench.file("closed")]
        for copy in copies {
            if copy == copies[1] {
                // Whatever was in the log is in the database then.
                await store?.close()
                store = nil
            }
            try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
            for name in ["store.head", "store.key", "store.sqlite", "store.sqlite-wal"] {
                try? FileManager.default.copyItem(at: bench.file(name), to: copy.appending(path: name))
            }
        }
        #expect(FileManager.default.fileExists(atPath: copies[0].appending(path: "store.sqlite-wal").path))
        var found = 0
        var random = Seed.generator()
        for flip in 0..<Self.flips {
            let copy = try #require(copies.randomElement(using: &random))
            let names = try FileManager.default.contentsOfDirectory(atPath: copy.path).sorted()
            let name = try #require(names.randomElement(using: &random))
            let trial = bench.file("trial-\(flip)")
            try FileManager.default.copyItem(at: copy, to: trial)
            defer { try? FileManager.default.removeItem(at: trial) }
            var bytes = try Data(contentsOf: trial.appending(path: name))
            guard !bytes.isEmpty else { continue }
            let index = Int.random(in: 0..<bytes.count, using: &random)
            let bit = Int.random(in: 0..<8, using: &random)
            bytes[index] ^= 1 << bit
            try bytes.write(to: trial.appending(path: name))
            let tampered = RecordStore(folder: trial) { [bench] in bench.clock.now }
            do {
                let after = try await account(of: tampered)
                #expect(after == before, "bit \(bit) of byte \(index) of \(name)")
            } catch is StoreFailure {
                found += 1
            }
        }
        #expect(found > Self.flips / 4)
    }

    @Test("an old copy of the database, or one without its head or key, is found out")
    func replaced() async throws {
        let bench = try StoreBench()
        var store: RecordStore? = try await bench.preparedStore()
        try await store?.add(StoreBench.payment("a"))
        await store?.close()
        store = nil
        try FileManager.default.copyItem(at: bench.file("store.sqlite"), to: bench.file("old"))
        store = bench.store()
        try await store?.add(StoreBench.payment("b"))
        await store?.close()
        store = nil
        try FileManager.default.moveItem(at: bench.file("store.sqlite"), to: bench.file("new"))
        for (file, expected) in [("old", "1 entries are missing at its end"), ("none", "store.sqlite is missing")] {
            try? FileManager.default.removeItem(at: bench.file("store.sqlite"))
            try? FileManager.default.copyItem(at: bench.file(file), to: bench.file("store.sqlite"))
            await damaged(bench, expected)
        }
        try? FileManager.default.removeItem(at: bench.file("store.sqlite"))
        try FileManager.default.moveItem(at: bench.file("new"), to: bench.file("store.sqlite"))
        #expect(try await bench.store().count() == 2)
        try FileManager.default.moveItem(at: bench.file("store.head"), to: bench.file("head"))
        await damaged(bench, "store.head is missing")
        try FileManager.default.moveItem(at: bench.file("head"), to: bench.file("store.head"))
        try FileManager.default.moveItem(at: bench.file("store.key"), to: bench.file("key"))
        await #expect { try await bench.store().count() } throws: { "\($0)".contains("no such file") }
        try FileManager.default.moveItem(at: bench.file("key"), to: bench.file("store.key"))
        #expect(try await bench.store().count() == 2)
    }

    @Test("of a head without its key no more is read than a head has, and no store takes the place of its own")
    func endlessHead() async throws {
        let bench = try StoreBench()
        var store: RecordStore? = try await bench.preparedStore()
        await store?.close()
        store = nil
        try FileManager.default.removeItem(at: bench.file("store.key"))
        // Of a terabyte, none of which is on the disk.
        #expect(truncate(bench.file("store.head").path, 1 << 40) == 0)
        await #expect { try await bench.store().count() } throws: { "\($0)".contains("no such file") }
        #expect(FileManager.default.fileExists(atPath: bench.file("store.sqlite").path))
    }

    /// Two stores of the same keys with as many entries, as a folder that was copied makes them.
    @Test("the head of another book with the same keys, and as many entries, is found out")
    func headOfACopy() async throws {
        let bench = try StoreBench()
        await (try await bench.preparedStore()).close()
        let copy = bench.file("copy")
        try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
        for name in ["store.head", "store.key", "store.sqlite"] {
            try FileManager.default.copyItem(at: bench.file(name), to: copy.appending(path: name))
        }
        for folder in [bench.folder, copy] {
            let store = RecordStore(folder: folder) { [bench] in bench.clock.now }
            try await store.add(StoreBench.payment())
            await store.close()
        }
        try FileManager.default.removeItem(at: bench.file("store.head"))
        try FileManager.default.moveItem(at: copy.appending(path: "store.head"), to: bench.file("store.head"))
        await damaged(bench, "its head is of another book")
    }

    /// 16 bytes of identifier, 8 of sequence, 32 of hash and 32 of MAC: 88.
    @Test(
        "only a head of exactly its length belongs to a store that was not completely created", arguments: [87, 88, 89])
    func unfinished(_ length: Int) async throws {
        let bench = try StoreBench()
        try Data(count: length).write(to: bench.file("store.head"))
        if length == 88 {
            #expect(try await bench.store().count() == 0)
        } else {
            await #expect { try await bench.store().count() } throws: { "\($0)".contains("no such file") }
            #expect(try Data(contentsOf: bench.file("store.head")) == Data(count: length))
        }
    }

    @Test(
        "of a store that is damaged, the payments that can be read are given out; the store stays as it is",
        .enabled(if: Program.isInstalled("sqlite3"), "sqlite3 is not installed"))
    func salvaged() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        // Each has pages of its own.
        let ids = (0..<12).map { "\($0)" }
        for id in ids {
            try await store.add(
                RecordStore.Payment(
                    id: id, paymentCardData: "sealed-\(id)" + String(repeating: "x", count: 8000), generalCardData: "",
                    amount: 1, currency: "EUR", issuer: StoreBench.issuer, merchant: "merchant-1"))
        }
        await store.close()
        var bytes = try Data(contentsOf: bench.file("store.sqlite"))
        // A bit of one payment.
        let part = try await Program.run([
            "sqlite3", bench.file("store.sqlite").path,
            "SELECT hex(substr(content, 3000, 32)) FROM entry WHERE subject = '6'",
        ])
        let sought = try Data([UInt8](hex: part.output.trimmingCharacters(in: .whitespacesAndNewlines)))
        let place = try #require(bytes.range(of: sought)).lowerBound
        bytes[place] ^= 1
        try bytes.write(to: bench.file("store.sqlite"))
        let head = try Data(contentsOf: bench.file("store.head"))
        let damaged = bench.store()
        await #expect { try await damaged.count() } throws: { "\($0)".hasPrefix("the store is damaged") }
        let salvaged = try await damaged.salvage()
        #expect(salvaged.map(\.id) == ids.filter { $0 != "6" })
        #expect(salvaged.allSatisfy { $0.paymentCardData.hasPrefix("sealed-\($0.id)x") })
        #expect(try Data(contentsOf: bench.file("store.sqlite")) == bytes)
        #expect(try Data(contentsOf: bench.file("store.head")) == head)
        // Without the head the store is shut, too, and nothing is missing.
        bytes[place] ^= 1
        try bytes.write(to: bench.file("store.sqlite"))
        try Data("0".utf8).write(to: bench.file("store.head"))
        #expect(try await damaged.salvage().map(\.id) == ids)
    }

    @Test(
        "of a store that has given back the room of what was forwarded, the tables are known",
        .enabled(if: Program.isInstalled("sqlite3"), "sqlite3 is not installed"))
    func vacuumed() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        try await store.add(
            RecordStore.Payment(
                id: "a", paymentCardData: "sealed-a", generalCardData: "", amount: 1, currency: "EUR",
                issuer: StoreBench.issuer, merchant: "merchant-1"))
        await store.close()
        // What the store does itself when it has shrunk.
        let outcome = try await Program.run(["sqlite3", bench.file("store.sqlite").path, "VACUUM"])
        #expect(outcome.status == 0, "\(outcome)")
        #expect(try await bench.store().count() == 1)
    }

    private func damaged(_ bench: StoreBench, _ expected: String) async {
        await #expect("\(expected)") { try await bench.store().count() } throws: { error in
            "\(error)".hasPrefix("the store is damaged") && "\(error)".contains(expected)
        }
    }

    @Test(
        "SQLite itself refuses to change what is stored; who makes it is found out",
        .enabled(if: Program.isInstalled("sqlite3"), "sqlite3 is not installed"),
        arguments: [
            ("UPDATE entry SET time = time + 1 WHERE sequence = 10", "entries are not changed", "entry 10 is not what"),
            ("DELETE FROM entry WHERE sequence = 11", "entries are not deleted", "entry 11 is missing"),
            ("DELETE FROM entry WHERE sequence = 8", "entries are not deleted", "entry 1 is missing"),
            (
                "DELETE FROM entry WHERE sequence = (SELECT max(sequence) FROM entry)", "entries are not deleted",
                "1 entries are missing at its end"
            ),
            ("UPDATE entry SET content = x'78' WHERE subject = 'c'", "is not changed", "payment c is not what"),
            (
                "UPDATE entry SET content = (SELECT content FROM entry WHERE subject = 'd' AND content IS NOT NULL) WHERE content IS NOT NULL",
                "is not changed", "payment c is not what"
            ),
            (
                "UPDATE entry SET content = NULL WHERE subject = 'c'", "is not deleted",
                "payment c is missing"
            ),
            (
                "UPDATE entry SET content = x'00' WHERE kind = 'checkpoint'", "is not changed",
                "belongs to no payment"
            ),
            (
                "UPDATE entry SET content = x'00' WHERE kind = 'batched'", "is not changed",
                "belongs to no payment"
            ),
            ("PRAGMA user_version = 5", nil, "newer version"),
            ("PRAGMA user_version = 2", nil, "older version"),
        ])
    func statements(sql: String, refusal: String?, detection: String) async throws {
        let bench: StoreBench
        do {
            let (made, store) = try await varied()
            _ = try await store.count()
            bench = made
        }
        func run(_ sql: String) async throws -> Program.Outcome {
            try await Program.run(["sqlite3", bench.file("store.sqlite").path, sql])
        }
        let refused = try await run(sql)
        if let refusal {
            #expect(refused.status != 0 && refused.error.contains(refusal), "\(refused)")
            _ = try await bench.store().count()
            // Without the triggers, which are put back afterwards.
            let names = [
                "entry_stays", "entry_remains", "content_stays", "content_remains", "outcome_stays", "past_stays",
            ]
            let triggers = try await run("SELECT sql || ';' FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid")
            let script = names.map { "DROP TRIGGER \($0);" }.joined() + sql + ";" + triggers.output
            let forced = try await run(script)
            #expect(forced.status == 0, "\(forced)")
        }
        await #expect { try await bench.store().count() } throws: { "\($0)".contains(detection) }
    }
}

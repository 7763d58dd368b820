import Fuzzing
import Synchronization

fuzz { bytes in
    let isDone = Atomic(false)
    Task.detached {
        await FuzzTargets.cardInspector(bytes)
        isDone.store(true, ordering: .releasing)
    }
    while !isDone.load(ordering: .acquiring) {}
}

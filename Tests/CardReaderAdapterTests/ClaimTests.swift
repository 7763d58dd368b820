import CardReaderAdapter
import Synchronization
import TestSupport
import Testing

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct ClaimTests {
    @Test("A result is taken once it is claimed, whether that is waited for before or after")
    func claim() {
        let told = Mutex(0)
        let claim = ResultClaim()
        claim.whenTaken { told.withLock { $0 += 1 } }
        #expect(!claim.isTaken && told.withLock { $0 } == 0)
        claim.take()
        #expect(claim.isTaken && told.withLock { $0 } == 1)
        claim.whenTaken { told.withLock { $0 += 1 } }
        #expect(told.withLock { $0 } == 2)
    }
}

import Foundation

/// What the terminal does while the machine sleeps.
extension PaymentTerminal {
    /// From the first `prepare` on, and from the next one after the bus has gone.
    func watchSleep() {
        guard sleepWatch == nil else { return }
        let states = SleepWatch.states(on: configuration.systemBus)
        sleepWatch = Task { [weak self] in
            for await isAsleep in states { await self?.hostSleeps(isAsleep) }
            await self?.endSleepWatch()
        }
    }

    /// Nobody would tell of the machine's waking.
    private func endSleepWatch() {
        sleepWatch = nil
        hostSleeps(false)
    }

    /// Nothing is read while the machine sleeps.  Afterwards the reader is looked for anew, and the session goes on.
    private func hostSleeps(_ isAsleep: Bool) {
        guard isAsleep != self.isAsleep else { return }
        self.isAsleep = isAsleep
        attached = nil
        if isAsleep { interruptRead(with: .readFromBackgroundError) }
        guard session != nil else { return }
        if isAsleep { events.send(.notReady) } else { searchReader() }
    }
}

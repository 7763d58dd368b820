import Foundation

/// The terminal's behavior while the machine sleeps.
extension PaymentTerminal {
    /// Starts the watch with the first `prepare`, and again with the next one after the bus was lost.
    func watchSleep() {
        guard sleepWatch == nil else { return }
        let states = SleepWatch.states(on: configuration.systemBus)
        sleepWatch = Task { [weak self] in
            for await isAsleep in states { await self?.hostSleeps(isAsleep) }
            await self?.endSleepWatch()
        }
    }

    /// Ends the watch: nobody would report that the machine wakes.
    private func endSleepWatch() {
        sleepWatch = nil
        hostSleeps(false)
    }

    /// Ends reads while the machine sleeps.  The session continues afterward.
    private func hostSleeps(_ isAsleep: Bool) {
        guard isAsleep != self.isAsleep else { return }
        self.isAsleep = isAsleep
        // Searched anew after the sleep.
        attached = nil
        if isAsleep { interruptRead(with: .readFromBackgroundError) }
        if isAsleep, session != nil { events.send(.notReady) }
    }
}

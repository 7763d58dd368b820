import ProximityReader

/// The reason why nobody stands in front of the kiosk.
enum Absence: Hashable, Sendable {
    /// The application said so.
    case application
    case sleep
    case screenLock
}

extension BridgeHost {
    /// Tells the page that the kiosk is not in use, then does what ``onBackground(_:)`` named.
    public func enterBackground() async { await add(.application) }

    /// Prepares what ``onForeground(_:)`` named, then tells the page, unless the machine sleeps or its screen is locked.
    public func enterForeground() async { await remove(.application) }

    /// Follows the sleep of this machine, as logind announces it, until the host is released.
    ///
    /// - Parameter bus: the address of the bus (D-Bus specification, Server Addresses); nil for the system bus.  Without
    ///   a bus it does nothing.
    public func followSleep(bus: String? = nil) { follow(.sleep, SleepWatch.states(on: bus)) }

    /// Follows the lock of this machine's screens, as logind tells it, until the host is released.
    ///
    /// The kiosk is in the background while a session of a seat is locked.  Sessions without a seat, such as those of SSH,
    /// do not count.
    ///
    /// - Parameter bus: the address of the bus (D-Bus specification, Server Addresses); nil for the system bus.  Without
    ///   a bus it does nothing.
    public func followScreenLock(bus: String? = nil) { follow(.screenLock, ScreenLockWatch.states(on: bus)) }

    private func follow(_ absence: Absence, _ states: AsyncStream<Bool>) {
        watches.append(
            Task { [weak self] in
                for await isAway in states {
                    if isAway { await self?.add(absence) } else { await self?.remove(absence) }
                }
                // Nobody would tell its end.
                await self?.remove(absence)
            })
    }

    private func add(_ absence: Absence) async {
        let wasInBackground = isInBackground
        absences.insert(absence)
        guard !wasInBackground else { return }
        send(event: "host.background", data: [:])
        await leave()
    }

    private func remove(_ absence: Absence) async {
        guard absences.remove(absence) != nil, !isInBackground else { return }
        await prepare()
        // It may have gone to the background again.
        guard !isInBackground else { return }
        send(event: "host.foreground", data: [:])
        capabilitiesChanged()
    }
}

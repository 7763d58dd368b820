import Glibc
import SmartCardSimulatorHosts

/// The signals that end or concern a running command.  They are blocked from the start, in every thread, and taken one
/// by one.
struct Signals {
    private var set = sigset_t()

    init() {
        sigemptyset(&set)
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD] {
            sigaddset(&set, signal)
        }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
    }

    /// A signal that requested the end before there was a listener.
    var pending: Int32? {
        var pending = sigset_t()
        sigpending(&pending)
        return [SIGINT, SIGTERM, SIGHUP, SIGQUIT].first { sigismember(&pending, $0) == 1 }
    }

    /// Passes signals on until the command ends.  Signals from the terminal reach the command directly.
    ///
    /// - Returns: the command's exit status.
    func passOn(to command: ChildProcess) -> Int32 {
        while true {
            if let status = command.poll() { return status }
            let (signal, isFromKernel) = next()
            if signal != SIGCHLD, signal > 0, !isFromKernel { kill(command.pid, signal) }
        }
    }

    func waitForEnd() {
        while ![SIGINT, SIGTERM, SIGHUP, SIGQUIT].contains(next().signal) {}
    }

    private func next() -> (signal: Int32, isFromKernel: Bool) {
        var set = set
        var information = siginfo_t()
        let signal = sigwaitinfo(&set, &information)
        return (signal, information.si_code > 0)
    }
}

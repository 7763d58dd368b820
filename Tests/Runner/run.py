"""Builds the tests and runs them, a process for each module.  Tests/run says how it is called."""
import argparse, collections, datetime, os, re, signal, subprocess, sys, threading, time, traceback
from package import ROOT, Package, changed, git
from processes import NOTHING, Outcome, Processes

# Two at a time: each core has one that computes while others wait.
AT_ONCE = 2


def table():
    """Tests/modules: the width of each module's process, and its seconds in the fast and the thorough tier, which order the modules."""
    rows = {}
    for line in (ROOT / "Tests/modules").read_text().splitlines():
        if line and not line.startswith("#"):
            name, *numbers = line.split()
            rows[name] = [int(number) for number in numbers[:3]]
    return rows


def say(*words):
    print(*words, flush=True)


def seed():
    """SEED, or what the commit's name says: one commit has one luck."""
    text = os.environ.get("SEED") or str(int(git("rev-parse", "HEAD")[:12] or "1", 16))
    if not text.isdigit():
        sys.exit(f"SEED: {text!r} is no number")
    return int(text)


def build(package, modules, scratch):
    environment = dict(os.environ)
    environment.pop("ONLY", None)
    if len(modules) < len(package.tests):
        environment["ONLY"] = ",".join(modules)
    remember = package.forget_what_may_lie(scratch)
    start = time.monotonic()
    status = subprocess.run(
        ["swift", "build", "--build-tests", *os.environ["BUILD_FLAGS"].split()], cwd=ROOT, env=environment).returncode
    if status:
        sys.exit(status)
    remember()
    say(f"== Building took {time.monotonic() - start:.0f} s")


class Run:
    def __init__(self, options, modules):
        self.options, self.modules = options, modules
        self.processes = Processes(options.thorough, seed(), options.width, getattr(options, "scratch", ".build"))
        self.outcomes, self.lock = {}, threading.Lock()
        self.table = table()

    def width(self, module):
        return self.table.get(module, [8])[0]

    def expected(self, module):
        row = self.table.get(module, [8, 1, 1])
        return row[2 if self.options.thorough else 1]

    def all(self):
        queue = collections.deque(sorted(self.modules, key=self.expected, reverse=True))

        def work():
            while True:
                with self.lock:
                    if not queue:
                        return
                    module = queue.popleft()
                # Whatever goes wrong here is that module's failure.
                try:
                    outcome = self.processes.run(module, self.width(module), self.options.filter, self.options.skip)
                except Exception:
                    outcome = Outcome(module, trouble="was not run", output=traceback.format_exc())
                if self.processes.stopped:
                    return
                with self.lock:
                    # A module without a match is not what was asked for, unless it was named.
                    if not (self.options.filter and outcome.status == NOTHING and not outcome.trouble) or module in self.options.named:
                        self.outcomes[module] = outcome
                        self.tell(outcome)
        workers = [threading.Thread(target=work) for _ in range(AT_ONCE)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def tell(self, outcome):
        mark = "✔" if outcome.passed else "✘"
        skipped = sum(test.skipped is not None for test in outcome.tests.values())
        if outcome.status == NOTHING and not outcome.trouble:
            outcome.trouble = "has no such test" if self.options.filter else "is not in what is built: run without --built"
        say(f"{mark} {outcome.module:28} {len(outcome.ran):5} tests  {outcome.seconds:6.1f} s"
            + (f"  {skipped} skipped" if skipped else "") + (f"  {outcome.trouble}" if outcome.trouble else ""))
        if not outcome.passed:
            if text := faults(outcome):
                say(indented(text))
            say(f"    its whole output: .build/tests/{outcome.module}.log")

    def again(self, affected):
        """Runs what failed in modules that the change does not affect alone, three times; returns the tests that failed by chance."""
        chance = []
        for outcome in list(self.outcomes.values()):
            # Only tests that failed: no trap, no sanitizer's report, no issue that belongs to none of them.
            if outcome.status != 1 or outcome.trouble or outcome.strays or outcome.module in affected:
                continue
            repeated = []
            for test in outcome.failed:
                name = "^" + re.escape(test.path) + "(/|$)"
                results = [self.processes.run(outcome.module, 1, [name], log=f"{outcome.module}.alone") for _ in range(3)]
                if not all(result.passed and test.path in {one.path for one in result.ran} for result in results):
                    say(f"✘ {test.path} failed again alone: .build/tests/{outcome.module}.alone.log")
                    repeated = None
                    break
                repeated.append((test, faults(outcome, test), "\n".join(result.output for result in results)))
            if repeated:
                chance += [(outcome, *row) for row in repeated]
                outcome.status = 0
                for test, *_ in repeated:
                    test.failed = False
        return chance

    def unmatched(self):
        """The filters that no test matches."""
        tests = [test.id for outcome in self.outcomes.values() for test in outcome.tests.values()]
        return [word for word in self.options.filter if not any(re.search(word, test) for test in tests)]


def faults(outcome, test=None):
    """What the output says of failures."""
    lines, keep = [], False
    for line in outcome.output.splitlines():
        if line[:1] in "✘◇✔➜↳" or line.startswith(("error:", "Fatal error", "*** ")):
            about = test is None or test.name in line or test.path.split("/")[-1] in line
            keep = line.startswith(("✘", "error:", "Fatal", "*** ")) and about or line.startswith("↳") and keep
        if keep:
            lines.append(line[:2000])
    if outcome.trouble and not lines:
        lines = outcome.output.splitlines()[-20:]
    # A compiler's warnings may stand before what matters.
    return "\n".join(lines[:60] + [line for line in lines[60:] if "error:" in line or line.startswith("✘")][:40])


def indented(text):
    return "\n".join("    " + line for line in text.splitlines())


def report(run):
    outcomes = list(run.outcomes.values())
    everything = [(test.seconds, outcome.module, test) for outcome in outcomes for test in outcome.ran]
    everything.sort(key=lambda row: -row[0])
    (ROOT / ".build/tests/list.txt").write_text(
        "".join(f"{seconds:9.3f}  {test.cases:5}  {test.path}\n" for seconds, _, test in everything))
    if len(everything) > 1:
        say("\n== The slowest, in seconds from their start (all: .build/tests/list.txt)")
        for seconds, module, test in everything[:40]:
            if seconds >= 0.5:
                say(f"{seconds:8.1f}  {test.path}" + (f"  ({test.cases} cases)" if test.cases > 1 else ""))
    reasons = collections.Counter()
    for outcome in outcomes:
        for test in outcome.tests.values():
            if test.skipped is not None:
                text = re.sub(r"^(Test|Suite) .* skipped: ", "", test.skipped).strip('"')
                reasons["thorough" if "thorough: " in text else text or "no reason is given"] += 1
    if reasons:
        say("\n== Skipped")
        for reason, count in reasons.most_common():
            say(f"{count:8}  " + ("thorough: Tests/run --thorough, Tests/all" if reason == "thorough" else reason))
    say("\n== Each module's own last words")
    for outcome in outcomes:
        say(f"{'✔' if outcome.passed else '✘'} {outcome.module}: {outcome.closing or outcome.trouble}")
    return reasons


def incomplete(reasons, excuse):
    """Reasons of skipped tests that a machine on which Tests/install has run must not have: all but those that have nothing to do with
    the machine.  But not every machine has QEMU and Debian's kernel, and PyPI may not have answered."""
    return [reason for reason in reasons if not re.search(r"^thorough$|^a part of |^MASTER_LIST ", reason) and not re.search(excuse, reason)]


def chances(rows):
    """Tells what failed by chance, and adds it to Tests/flaky.txt."""
    file = ROOT / "Tests/flaky.txt"
    for outcome, test, first, alone in rows:
        say(f"\nFLAKY {test.path}: failed once, and passed three times alone; the change does not affect {outcome.module}")
        say(indented(first))
        say("    alone: " + "; ".join(re.findall(r"^. (Test run with .*)$", alone, re.M)))
        line = f"{test.path}  {datetime.date.today()}  {git('rev-parse', '--short', 'HEAD')}  {first.splitlines()[0] if first else ''}"
        with open(file, "a") as kept:
            kept.write(line + "\n")


def main():
    parser = argparse.ArgumentParser(prog="Tests/run", add_help=False)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--filter", action="append", default=[])
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--width", type=int)
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--scratch", default=".build")
    parser.add_argument("--except", dest="without", action="append", default=[])
    parser.add_argument("--complete", action="store_true")
    # The gate has another one where PyPI has not answered.
    parser.add_argument("--excuse", default=os.environ.get("EXCUSE", "kernel-image|qemu"))
    # Nothing is run again: Tests/shake counts itself.
    parser.add_argument("--once", action="store_true")
    options = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    started = time.monotonic()
    package = Package()
    options.named = [package.module(word) for word in options.modules]
    modules = options.named or package.tests
    modules = [name for name in modules if name not in map(package.module, options.without)]
    # A shell's child in the background ignores Ctrl-C, unless it says otherwise.
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    if not options.built:
        build(package, modules, ROOT / options.scratch)
    if options.build:
        return
    run = Run(options, modules)
    if run.processes.before is None:
        say("No network namespaces here: the modules share this machine's network.")
    say(f"== SEED={run.processes.seed}; {len(modules)} module{'s' * (len(modules) > 1)}, {AT_ONCE} at a time")
    rows = []
    try:
        run.all()
        if not options.filter:
            for module in set(modules) - set(run.outcomes):
                run.outcomes[module] = Outcome(module, trouble="did not run")
        if not options.once and not all(outcome.passed for outcome in run.outcomes.values()):
            rows = run.again(package.affected(changed()))
    finally:
        run.processes.stop()
    reasons = report(run)
    chances(rows)
    failed = [outcome for outcome in run.outcomes.values() if not outcome.passed]
    tests = sum(len(outcome.ran) for outcome in run.outcomes.values())
    suites = sum(outcome.suites for outcome in run.outcomes.values())
    missing = incomplete(reasons, options.excuse) if options.complete else []
    issues = sum(len(outcome.failed) or 1 for outcome in failed) + len(missing) + len(run.unmatched())
    seconds = time.monotonic() - started
    say()
    for reason in missing:
        say(f"✘ error: skipped for want of what Tests/install installs: {reason}")
    unmatched = run.unmatched()
    for word in unmatched:
        say(f"✘ No test matches {word}")
    for outcome in failed:
        say(f"✘ {outcome.module} failed: {outcome.trouble or ', '.join(test.path for test in outcome.failed) or outcome.closing}")
    if failed or missing or unmatched or not tests:
        say(f"✘ Test run with {tests} tests in {suites} suites failed after {seconds:.3f} seconds with {issues} issues.")
    else:
        say(f"✔ Test run with {tests} tests in {suites} suites passed after {seconds:.3f} seconds.")
    sys.exit(1 if failed or missing or unmatched or not tests else 0)


if __name__ == "__main__":
    main()

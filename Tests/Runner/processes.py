"""A process for each test module: alone with its network, its temporary folder and its threads."""
import glob, json, os, re, shutil, signal, subprocess, tempfile, threading, time
from dataclasses import dataclass, field
from package import ROOT

# After so long without an event a module stands still.  No test may take as long: each has a limit of its own.
STILL = 900
# swift-testing's status where no test matches (sysexits.h: EX_UNAVAILABLE).
NOTHING = 69


def isolation():
    """The words before a command that give it a network of its own with its loopback up, and end with it whatever it has started; None
    where this machine permits neither.  The shell stays, as the first process there: a test program is not made for that."""
    for options in ["-n --pid --fork --kill-child --mount-proc", "-rn --pid --fork --kill-child --mount-proc", "-n", "-rn"]:
        words = ["unshare", *options.split(), "sh", "-c", 'ip link set lo up && "$@"; exit $?', "sh"]
        try:
            if subprocess.run(words + ["true"], capture_output=True, timeout=30).returncode == 0:
                return words
        except (OSError, subprocess.TimeoutExpired):
            pass
    return None


@dataclass
class Test:
    """A test of the event stream.  Its seconds count from the start of its first case to the end of its last.

    The stream tells the start of a case of a test with arguments; of a test without, it tells when the test was announced, long
    before it had a place (``Outcome.place``)."""
    id: str
    name: str
    cases: int = 0
    announced: float | None = None
    start: float | None = None
    ends: list = field(default_factory=list)
    end: float | None = None
    failed: bool = False
    skipped: str | None = None
    done: bool = False

    @property
    def seconds(self):
        return (self.end or self.start or 0) - (self.start or 0)

    @property
    def path(self):
        """Module.Suite/function(_:), without the place of its source."""
        return re.sub(r"/[^/]+\.swift:\d+:\d+$", "", self.id)


@dataclass
class Outcome:
    module: str
    status: int = 0
    seconds: float = 0
    tests: dict = field(default_factory=dict)
    suites: int = 0
    output: str = ""
    closing: str = ""
    trouble: str = ""
    # Issues of no test: what they name, a suite, or nothing where a task outlived its test.
    strays: list = field(default_factory=list)

    def place(self, width):
        """Finds the starts that the stream does not tell: places are given in the order of announcements, so the next case
        begins when so many have ended that a place is free."""
        queue = sorted((test for test in self.tests.values() if test.announced is not None), key=lambda test: test.announced)
        ends, before = sorted(end for test in queue for end in test.ends or [test.end] if end is not None), 0
        for test in queue:
            if test.start is None and test.end is not None:
                free = ends[before - width] if before >= width else test.announced
                test.start = min(max(test.announced, free), test.end)
            before += max(test.cases, 1)

    @property
    def passed(self):
        return self.status == 0 and not (self.trouble or self.failed or self.strays)

    @property
    def ran(self):
        return [test for test in self.tests.values() if test.done and test.skipped is None]

    @property
    def failed(self):
        return [test for test in self.tests.values() if test.failed]

    @property
    def begun(self):
        """The tests that were announced and never ended."""
        return sorted(test.path for test in self.tests.values() if test.announced is not None and not test.done)

    @property
    def unfinished(self):
        """What a process that says that it has passed still owes."""
        return sorted(test.path for test in self.tests.values() if not test.done and test.skipped is None)


class Processes:
    def __init__(self, thorough=False, seed=None, width=None, scratch=".build", root=None):
        self.root = root or ROOT
        self.binary = next((self.root / scratch / "debug").glob("*PackageTests.xctest"), None) or exit("Tests/run has built nothing yet.")
        self.before = isolation()
        self.thorough, self.seed, self.width = thorough, seed, width
        self.running, self.lock, self.stopped = set(), threading.Lock(), False

    def run(self, module, width, filters=(), skips=(), log=None, thorough=None, limit=None, **variables):
        """Runs a module's tests to their end, or for `limit` seconds; what they print is in .build/tests/MODULE.log."""
        outcome = Outcome(module)
        # Short, since sockets are made below it, and the name of one has 107 bytes at the most.
        folder = tempfile.mkdtemp(prefix="st.", dir="/tmp")
        events = os.path.join(folder, "events")
        os.mkfifo(events)
        environment = dict(os.environ, SWIFT_CONTACTLESS_TMPDIR=folder, TMPDIR=folder, NO_COLOR="1", **variables)
        if self.seed is not None:
            environment["SEED"] = str(self.seed)
        environment.pop("THOROUGH", None)
        if self.thorough if thorough is None else thorough:
            environment["THOROUGH"] = "1"
        command = (self.before or []) + [
            str(self.binary), "--testing-library", "swift-testing", "--event-stream-version", "0",
            "--event-stream-output-path", events,
            "--experimental-maximum-parallelization-width", str(self.width or width)]
        for word in filters or [""]:
            command += ["--filter", rf"^(?={module}\.)(?=.*(?:{word}))"]
        for word in skips:
            command += ["--skip", word]
        start = time.monotonic()
        log = self.root / ".build/tests" / f"{log or module}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "wb") as output, self.lock:
            if self.stopped:
                shutil.rmtree(folder, ignore_errors=True)
                outcome.trouble = "was stopped"
                return outcome
            process = subprocess.Popen(
                command, cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True)
            self.running.add(process)
        last = [time.monotonic()]
        reader = threading.Thread(target=self.read, args=(events, outcome, last), daemon=True)
        reader.start()
        while process.poll() is None:
            time.sleep(0.05)
            if time.monotonic() - last[0] > STILL:
                outcome.trouble = f"stood still for {STILL} s in {', '.join(outcome.begun) or 'no test'}"
                self.kill(process)
            elif limit is not None and time.monotonic() - start > limit:
                outcome.trouble = f"did not end within {limit} s"
                self.kill(process)
        # The end of the pipe, also where the program never opened it.
        try:
            os.close(os.open(events, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass
        self.kill(process)
        reader.join(60)
        if reader.is_alive():
            outcome.trouble = outcome.trouble or "told of events without an end"
        outcome.place(self.width or width)
        for path in sorted(glob.glob(os.path.join(folder, "events.*"))):
            self.take(path, outcome, last)
        with self.lock:
            self.running.discard(process)
        shutil.rmtree(folder, ignore_errors=True)
        outcome.seconds = time.monotonic() - start
        # A shell tells of a signal by 128 and its number.
        status = process.returncode
        outcome.status = 128 - status if 128 < status < 160 else status
        outcome.output = log.read_text(errors="replace")
        closing = re.findall(r"^. (Test run with .*)$", outcome.output, re.M)
        outcome.closing = closing[-1] if closing else ""
        if not outcome.trouble and (not closing or outcome.status not in (0, 1, NOTHING)):
            words = f"a signal, {signal.Signals(-outcome.status).name}" if outcome.status < 0 else f"status {outcome.status}"
            outcome.trouble = f"ended with {words} during {', '.join(outcome.begun[:20]) or 'no test'}"
        # A status and a line are soon written: the events have to say the same.
        if not outcome.trouble and outcome.status in (0, 1):
            if not outcome.tests:
                outcome.trouble = "told of no test"
            elif outcome.unfinished:
                outcome.trouble = f"ended without {', '.join(outcome.unfinished[:20])}"
        if not outcome.trouble and outcome.status == NOTHING and outcome.tests:
            outcome.trouble = f"says that no test matches, and told of {len(outcome.tests)}"
        return outcome

    def kill(self, process):
        """Ends what a module has left running."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def stop(self):
        """Ends every process, and lets no other begin."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                self.kill(process)

    def take(self, path, outcome, last):
        """Takes the events of a suite that needs a process of its own, SUITE of events.SUITE, in which one test runs at a time.

        That the suite has failed is then told by its tests."""
        nested = Outcome(outcome.module)
        self.read(path, nested, last)
        nested.place(1)
        for name, test in nested.tests.items():
            test.failed |= name in outcome.tests and outcome.tests[name].failed
        outcome.tests.update(nested.tests)
        if nested.failed:
            suite = path.rpartition("events.")[2]
            outcome.strays = [name for name in outcome.strays if not re.search(rf"[./]{re.escape(suite)}$", name)]
        outcome.strays += nested.strays

    def read(self, path, outcome, last):
        """Takes the tests and their times from the event stream."""
        with open(path, errors="replace") as stream:
            for line in stream:
                last[0] = time.monotonic()
                try:
                    record = json.loads(line)
                    payload = record["payload"]
                    if record["kind"] == "test":
                        if payload["kind"] == "suite":
                            outcome.suites += 1
                        else:
                            outcome.tests[payload["id"]] = Test(payload["id"], payload.get("displayName") or payload["name"])
                        continue
                    test = outcome.tests.get(payload.get("testID"))
                    if test is None:
                        if fails(payload):
                            outcome.strays.append(payload.get("testID") or "")
                        continue
                    kind, instant = payload["kind"], payload["instant"]["absolute"]
                    if kind == "testStarted":
                        test.announced = instant
                    elif kind == "testCaseStarted":
                        test.cases += 1
                        test.start = instant if test.start is None else test.start
                    elif kind == "testCaseEnded":
                        test.ends.append(instant)
                        test.end = instant
                    elif kind == "testEnded":
                        test.end = instant if test.end is None else test.end
                        test.done = True
                    elif kind == "testSkipped":
                        test.skipped = " ".join(message["text"] for message in payload.get("messages", []))
                    elif fails(payload):
                        test.failed = True
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue


def fails(payload):
    """Whether an event is an issue that fails its test: neither a known one nor a warning."""
    issue = payload.get("issue") or {}
    return payload["kind"] == "issueRecorded" and not issue.get("isKnown") and issue.get("severity", issue.get("_severity")) != "warning"

"""The runner itself, with a program that stands for the tests: what ran, what failed, what failed by chance, what stood still."""
import json, os, signal, subprocess, sys, tempfile, time, unittest
from pathlib import Path
from types import SimpleNamespace
import package, parts, processes, run

# It writes what a test program writes: events to the pipe, words to its output.
FAKE = """#!/usr/bin/python3
import json, os, sys, time
arguments = sys.argv[1:]
value = lambda name: arguments[arguments.index(name) + 1]
filters = [arguments[i + 1] for i, word in enumerate(arguments) if word == "--filter"]
here = os.path.dirname(os.path.abspath(__file__))
scene = json.load(open(os.path.join(here, "scene")))
stream = open(value("--event-stream-output-path"), "w")
def tell(kind, payload):
    stream.write(json.dumps(dict(version=0, kind=kind, payload=payload)) + "\\n")
    stream.flush()
def event(kind, test, at, **more):
    tell("event", dict(kind=kind, testID=test, instant=dict(absolute=at, since1970=at), messages=more.pop("messages", []), **more))
import re
failed = 0
tell("test", dict(id="M.S", kind="suite", name="S"))
chosen = [one for one in scene if any(re.search(word, one["id"]) for word in filters)]
for one in chosen:
    tell("test", dict(id=one["id"], kind="function", name=one["id"].split("/")[1]))
for one in chosen:
    name = one["id"].split("/")[1]
    event("testStarted", one["id"], 0)
    if "skipped" in one:
        event("testSkipped", one["id"], 0, messages=[dict(symbol="skip", text=f"Test {name} skipped: \\"{one['skipped']}\\"")])
        continue
    # Tests without arguments have no cases in the stream.
    if "start" in one:
        event("testCaseStarted", one["id"], one["start"])
    if one.get("hangs"):
        time.sleep(60)
    if one.get("traps"):
        os.abort()
    rounds = os.path.join(here, "rounds")
    count = int(open(rounds).read()) if os.path.exists(rounds) else 0
    open(rounds, "w").write(str(count + 1))
    if count < one.get("fails", 0):
        failed += 1
        print(f"✘ Test {name} recorded an issue at F.swift:1:1: Expectation failed: 1 == 2", flush=True)
        event("issueRecorded", one["id"], 1, issue=dict(isKnown=False))
    # Events of which its status and its last words say nothing.
    if "tells" in one:
        event("issueRecorded", one["id"], 1, issue=one["tells"])
    if one.get("leaves"):
        continue
    if "elsewhere" in one:
        for place in one["elsewhere"]:
            with open(os.path.join(os.environ["TMPDIR"], "events." + place), "w") as other:
                stream, saved = other, stream
                tell("test", dict(id=one["id"], kind="function", name=name))
                event("testStarted", one["id"], 2)
                if count < one.get("fails_there", 0) and place == one["elsewhere"][0]:
                    failed += 1
                    event("issueRecorded", one["id"], 3, issue=dict(isKnown=False))
                event("testEnded", one["id"], 4)
                stream = saved
        # The suite fails as that process did.
        if count < one.get("fails_there", 0):
            event("issueRecorded", one["id"].split("/")[0], 5, issue=dict(isKnown=False))
        continue
    if "start" in one:
        event("testCaseEnded", one["id"], one.get("end", 1))
    event("testEnded", one["id"], one.get("end", 1))
print(f"{'✘' if failed else '✔'} Test run with {len(chosen)} tests in 1 suites {'failed' if failed else 'passed'} after 0.1 seconds.")
print(os.environ.get("SEED"), os.environ.get("THOROUGH"), os.environ["TMPDIR"] == os.environ["SWIFT_CONTACTLESS_TMPDIR"])
sys.exit(1 if failed else 0)
"""


class RunnerTests(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.root, processes.ROOT = processes.ROOT, self.folder
        (self.folder / ".build/debug").mkdir(parents=True)
        self.program = self.folder / ".build/debug/FakePackageTests.xctest"
        self.program.write_text(FAKE)
        self.program.chmod(0o755)

    def tearDown(self):
        processes.ROOT = self.root
        subprocess.run(["rm", "-rf", str(self.folder)])

    def scene(self, *tests, filters=[], named=[]):
        (self.program.parent / "scene").write_text(json.dumps(tests))
        options = SimpleNamespace(thorough=False, width=None, filter=filters, skip=[], named=named)
        made = run.Run(options, ["M"])
        made.processes = processes.Processes(seed=7)
        made.tell = lambda outcome: None
        made.all()
        return made, made.outcomes["M"]

    def test_passed(self):
        made, outcome = self.scene(
            dict(id="M.S/one()/F.swift:1:1", start=3, end=3.5), dict(id="M.S/two()/F.swift:9:1", skipped="chromium is not installed"))
        self.assertTrue(outcome.passed)
        self.assertEqual([(test.path, test.seconds) for test in outcome.ran], [("M.S/one()", 0.5)])
        self.assertIn("7 None True", outcome.output)
        self.assertEqual(outcome.closing, "Test run with 2 tests in 1 suites passed after 0.1 seconds.")

    def test_places(self):
        # One place: the third test was announced with the others, and began when the second had ended.
        made, outcome = self.scene(
            dict(id="M.S/one()/F.swift:1:1", end=2), dict(id="M.S/two()/F.swift:2:1", start=2, end=5),
            dict(id="M.S/three()/F.swift:3:1", end=5.25))
        outcome.place(1)
        self.assertEqual([test.seconds for test in outcome.ran][:2], [2, 3])
        for test in outcome.tests.values():
            test.start = None if test.name == "three()" else test.start
        outcome.place(1)
        self.assertEqual([test.seconds for test in outcome.ran], [2, 3, 0.25])

    def test_failed(self):
        made, outcome = self.scene(dict(id="M.S/one()/F.swift:1:1", fails=99))
        self.assertEqual([test.path for test in outcome.failed], ["M.S/one()"])
        self.assertEqual(made.again(set()), [])
        self.assertFalse(outcome.passed)
        self.assertIn("1 == 2", run.faults(outcome))

    def test_chance(self):
        made, outcome = self.scene(dict(id="M.S/one()/F.swift:1:1", fails=1), dict(id="M.S/two()/F.swift:2:1"))
        self.assertFalse(outcome.passed)
        self.assertEqual(made.again({"M"}), [], "of an affected module it failed")
        self.assertFalse(outcome.passed)
        rows = made.again(set())
        self.assertEqual([row[1].path for row in rows], ["M.S/one()"])
        self.assertTrue(outcome.passed)

    def test_twice(self):
        made, outcome = self.scene(dict(id="M.S/one()/F.swift:1:1", fails=3))
        self.assertEqual(made.again(set()), [])
        self.assertFalse(outcome.passed)

    def test_trap(self):
        made, outcome = self.scene(dict(id="M.S/one()/F.swift:1:1", traps=True))
        self.assertFalse(outcome.passed)
        self.assertEqual(outcome.trouble, "ended with a signal, SIGABRT during M.S/one()")
        self.assertEqual(made.again(set()), [])
        self.assertFalse(outcome.passed, "a trap is nobody's chance")

    def test_lies(self):
        # The status is 0, and the last line says that all passed.
        for lie, words in [
            (dict(tells=dict(isKnown=False)), ""), (dict(leaves=True), "ended without M.S/one()"),
        ]:
            made, outcome = self.scene(dict(id="M.S/one()/F.swift:1:1", **lie), dict(id="M.S/two()/F.swift:2:1"))
            self.assertEqual((outcome.status, outcome.passed, outcome.trouble), (0, False, words))
        for harmless in [dict(isKnown=True), dict(isKnown=False, severity="warning")]:
            self.assertTrue(self.scene(dict(id="M.S/one()/F.swift:1:1", tells=harmless))[1].passed)
        made, outcome = self.scene()
        self.assertEqual((outcome.status, outcome.trouble), (0, "told of no test"))
        # What failed by chance does not hide what never ended.
        made, outcome = self.scene(dict(id="M.S/one()/F.swift:1:1", fails=99), dict(id="M.S/two()/F.swift:2:1", leaves=True))
        self.assertEqual((outcome.status, outcome.trouble), (1, "ended without M.S/two()"))
        self.assertEqual(made.again(set()), [])

    def test_elsewhere(self):
        # A suite's own process tells of its tests.
        made, outcome = self.scene(dict(id="M.S/one()/F.swift:1:1", elsewhere=["S"]), dict(id="M.S/two()/F.swift:2:1", end=5))
        self.assertTrue(outcome.passed, outcome.trouble)
        self.assertEqual([(test.path, test.seconds) for test in outcome.ran], [("M.S/one()", 2), ("M.S/two()", 5)])

    def test_chance_elsewhere(self):
        one = dict(id="M.S/one()/F.swift:1:1", elsewhere=["S"], fails_there=1)
        made, outcome = self.scene(one)
        self.assertEqual(([test.path for test in outcome.failed], outcome.strays), (["M.S/one()"], []))
        self.assertEqual([row[1].path for row in made.again(set())], ["M.S/one()"])
        self.assertTrue(outcome.passed)
        # A process that only says so is not enough, nor does a second one that passed take it back.
        made, outcome = self.scene(dict(one, fails_there=9, elsewhere=["S", "T"]))
        self.assertEqual([test.path for test in outcome.failed], ["M.S/one()"])
        made, outcome = self.scene(dict(one, fails_there=9, elsewhere=["Another"]))
        self.assertEqual(outcome.strays, ["M.S"])
        self.assertEqual(made.again(set()), [])

    def test_filters(self):
        one = dict(id="M.S/one()/F.swift:1:1")
        self.assertEqual(self.scene(one, filters=["one"])[0].unmatched(), [])
        self.assertEqual(self.scene(one, filters=["one", "another"])[0].unmatched(), ["another"])
        self.program.write_text(f"#!/bin/sh\necho '✘ Test run with 0 tests passed'; exit {processes.NOTHING}\n")
        made, outcome = self.scene(one, filters=["one"], named=["M"])
        self.assertFalse(outcome.passed)

    def test_complete(self):
        reasons = ["thorough", "a part of LibUSBTests", "MASTER_LIST names no file", "PyPI did not give nfcpy", "no mount namespaces"]
        self.assertEqual(run.incomplete(reasons, "qemu|PyPI"), ["no mount namespaces"])

    def test_hang(self):
        limit, processes.STILL = processes.STILL, 1
        made, outcome = self.scene(dict(id="M.S/one()/F.swift:1:1", hangs=True))
        processes.STILL = limit
        self.assertFalse(outcome.passed)
        self.assertIn("stood still for 1 s in M.S/one()", outcome.trouble)


    def test_signal(self):
        # A runner that is ended ends what it has started, and its folder is gone.
        (self.program.parent / "scene").write_text(json.dumps([dict(id="M.S/one()/F.swift:1:1", hangs=True)]))
        caller = """
import sys, processes, run
from pathlib import Path
from types import SimpleNamespace
processes.ROOT = run.ROOT = Path(sys.argv[1])
run.Package = lambda: SimpleNamespace(tests=["M"], module=lambda word: word)
run.table = dict
sys.argv = ["run.py", "--built", "--once", "M"]
run.main()
"""
        for number in [signal.SIGTERM, signal.SIGINT]:
            runner = subprocess.Popen([sys.executable, "-c", caller, str(self.folder)], cwd=Path(run.__file__).parent,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not self.running():
                self.assertIsNone(runner.poll())
                time.sleep(0.05)
            runner.send_signal(number)
            self.assertEqual(runner.wait(60), 128 + number)
            end = time.monotonic() + 30
            while self.running():
                self.assertLess(time.monotonic(), end, "it runs on")
                time.sleep(0.05)

    def running(self):
        """Whether the program that stands for the tests runs."""
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.append(path.read_bytes())
            except OSError:
                pass
        return any(line.startswith(b"/usr/bin/python3\0" + bytes(self.program)) for line in lines)


class PackageTests(unittest.TestCase):
    def setUp(self):
        self.package = package.Package()

    def test_affected(self):
        affected = self.package.affected(["Sources/WalletPasses/WalletPasses.swift"])
        self.assertIn("WalletPassesTests", affected)
        self.assertIn("ProximityReaderTests", affected)
        self.assertNotIn("SmartCardUSBTests", affected)
        self.assertEqual(self.package.affected(["Package.swift"]), set(self.package.tests))
        self.assertEqual(self.package.affected(["CHANGELOG.md"]), set())
        nested = self.package.affected(["Tests/ProximityReaderTests/store-worker/main.swift"])
        self.assertIn("KioskBridgeServerTests", nested)

    def test_every_row_means_something(self):
        self.assertEqual(sorted(run.table()), sorted(self.package.tests))
        tracked = package.git("ls-files").split("\n")
        for part in parts.PARTS:
            for alternative in (part.paths or "").split("|") if part.paths and "(" not in part.paths else []:
                self.assertTrue(any(run.re.match(alternative, file) for file in tracked), f"{part.name}: {alternative}")
            program = part.command.split()[0]
            self.assertTrue(os.access(package.ROOT / program, os.X_OK), program)

    def test_contributing(self):
        self.assertIn("\n".join(parts.rows()), (package.ROOT / "CONTRIBUTING.md").read_text(), "Tests/Runner/parts.py table")


if __name__ == "__main__":
    unittest.main()

"""The package's targets and arrows, as SwiftPM reads them from Package.swift, and what a change touches."""
import hashlib, json, os, re, subprocess, sys, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def git(*arguments):
    """What git prints; empty where it fails, as outside of a clone."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


class Package:
    def __init__(self):
        # Without ONLY; and SwiftPM remembers a manifest by the whole environment, in which folders are others each time.
        environment = {name: os.environ[name] for name in ["PATH", "HOME", "XDG_CACHE_HOME"] if name in os.environ}
        dump = subprocess.run(["swift", "package", "--ignore-lock", "dump-package"], cwd=ROOT, env=environment, stdout=subprocess.PIPE)
        if dump.returncode:
            sys.exit(dump.returncode)
        self.targets = {target["name"]: target for target in json.loads(dump.stdout)["targets"]}
        self.tests = [name for name, target in self.targets.items() if target["type"] == "test"]
        self.needs = {
            name: {value[0] for kind in target["dependencies"] for value in kind.values()} & set(self.targets)
            for name, target in self.targets.items()}

    def folder(self, name):
        target = self.targets[name]
        return target.get("path") or ("Tests/" if target["type"] == "test" else "Sources/") + name

    def target(self, path):
        """The target that a file belongs to; None for a file of no target."""
        owners = [name for name in self.targets if path.startswith(self.folder(name) + "/")]
        return max(owners, key=lambda name: len(self.folder(name)), default=None)

    def dependents(self, names):
        """These targets, and all that stand on them."""
        found = set(names)
        while more := {name for name, needs in self.needs.items() if needs & found} - found:
            found |= more
        return found

    def module(self, word):
        """The test module that a person means: SmartCardUSB, SmartCardUSBTests."""
        for name in [word, word + "Tests"]:
            if name in self.tests:
                return name
        raise SystemExit(f"There is no test module {word}. There are:\n  " + "\n  ".join(sorted(self.tests)))

    def affected(self, paths):
        """The test modules that a change of these files can spoil.  A file of no target, such as the manifest, a trace or a script,
        may belong to any; a page is read by people."""
        owners = {self.target(path) for path in paths if not path.endswith(".md")}
        return set(self.tests) if None in owners else self.dependents(owners) & set(self.tests)

    def folders(self, paths):
        """The folders of the targets that stand on what these files belong to: a change goes up the arrows."""
        return [self.folder(name) + "/" for name in self.dependents({self.target(path) for path in paths} - {None})]

    def forget_what_may_lie(self, scratch):
        """Removes the objects of every target that stands on one whose files changed since the last build.

        SwiftPM compiles a dependent anew only if the module between has changed: a public structure's layout can change and
        its user two modules above stay as it was.
        """
        seen = scratch / "sources.json"
        now = {name: self.state(name) for name in self.targets} | {"": self.resolved()}
        before = json.loads(seen.read_text()) if seen.exists() else {}
        changed = {name for name in now if before and before.get(name) != now[name]}
        if "" in changed:
            # Other versions of what all stands on.
            subprocess.run(["swift", "package", "--scratch-path", str(scratch), "clean"], cwd=ROOT)
            changed = set()
        # Each one's own dependents: a change of both ends leaves one between.
        for name in {user for one in changed for user in self.dependents({one}) - {one}}:
            module = name.replace("-", "_")
            for place in [scratch / f"debug/{name}.build", scratch / f"debug/{module}.build"]:
                for file in place.rglob("*"):
                    if file.suffix in {".o", ".swiftdeps", ".priors", ".swiftmodule"}:
                        file.unlink(missing_ok=True)
            (scratch / f"debug/Modules/{module}.swiftmodule").unlink(missing_ok=True)

        def remember():
            seen.parent.mkdir(parents=True, exist_ok=True)
            seen.write_text(json.dumps(now))
        return remember

    def resolved(self):
        file = ROOT / "Package.resolved"
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None

    def state(self, name):
        """What a target's files are, by their names, sizes and times."""
        files = sorted((ROOT / self.folder(name)).rglob("*"))
        text = "\n".join(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files if file.is_file())
        return hashlib.sha256(text.encode()).hexdigest()


def base():
    """The commit that a change begins after: BASE if it is set; else where this branch left origin/main; on main itself what its
    last day began with, since a clone of main does not know what was there before."""
    if commit := os.environ.get("BASE"):
        return git("rev-parse", "--verify", commit + "^{commit}") or exit(f"BASE: there is no commit {commit}")
    head = git("rev-parse", "HEAD")
    fork = git("merge-base", "HEAD", "origin/main")
    if fork and fork != head:
        return fork
    day = int(git("log", "-1", "--format=%ct") or time.time()) - 24 * 3600
    return git("rev-list", "-1", f"--before={day}", "HEAD") or git("rev-list", "--max-parents=0", "HEAD").split("\n")[-1]


def changed():
    """The files that the change touches, committed or not; every file where git does not know: in a clone without history, in a
    folder without git."""
    begin = base()
    if not begin or begin == git("rev-parse", "HEAD") and not os.environ.get("BASE"):
        files = git("ls-files", "-z").split("\0")
        return sorted(filter(None, files)) or [
            str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and ".build" not in path.parts]
    # A file that was moved is gone from where it was.
    files = git("diff", "-z", "--no-renames", "--name-only", begin).split("\0")
    return sorted(filter(None, {*files, *git("ls-files", "-z", "--others", "--exclude-standard").split("\0")}))

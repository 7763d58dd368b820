"""The package's targets and arrows, as SwiftPM reads them from Package.swift, and what a change touches."""
import hashlib, json, os, re, subprocess, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def git(*arguments):
    """What git prints; empty where it fails, as outside of a clone."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


class Package:
    def __init__(self):
        environment = {name: value for name, value in os.environ.items() if name != "ONLY"}
        dump = subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, env=environment, check=True, capture_output=True)
        self.targets = {target["name"]: target for target in json.loads(dump.stdout)["targets"]}
        self.tests = [name for name, target in self.targets.items() if target["type"] == "test"]
        self.needs = {
            name: {value[0] for kind in target["dependencies"] for value in kind.values()} & set(self.targets)
            for name, target in self.targets.items()}

    def folder(self, name):
        target = self.targets[name]
        return target.get("path") or ("Tests/" if target["type"] == "test" else "Sources/") + name

    def target(self, path):
        """The target that a file belongs to; nil for a file of none."""
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
        """The test modules that a change of these files can spoil.  A file of no target belongs to those whose folder of
        tests it is in, and to all if it is the manifest or a test's equipment."""
        if any(re.match(r"Package\.swift$|Tests/(run|flags|install|modules|Runner/)", path) for path in paths):
            return set(self.tests)
        return self.dependents({self.target(path) for path in paths} - {None}) & set(self.tests)

    def forget_what_may_lie(self, scratch):
        """Removes the objects of every target that stands on one whose files changed since the last build.

        SwiftPM compiles a dependent anew only if the module between has changed: a public structure's layout can change and
        its user two modules above stay as it was.
        """
        seen = scratch / "sources.json"
        now = {name: self.state(name) for name in self.targets}
        before = json.loads(seen.read_text()) if seen.exists() else {}
        changed = {name for name in now if before and before.get(name) != now[name]}
        for name in self.dependents(changed) - changed:
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
    """The files that the change touches, committed or not."""
    files = set(git("diff", "--name-only", base()).split("\n")) if base() else set()
    return sorted(filter(None, files | set(git("ls-files", "--others", "--exclude-standard").split("\n"))))

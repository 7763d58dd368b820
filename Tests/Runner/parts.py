"""The parts of a whole verdict: what each proves, what a change must touch for the gate to run it, and the minutes that it takes on
two cores where everything is built.

    parts.py plan     what .ci/run runs after the fast tier: a line for each, "name <tab> minutes <tab> command"
    parts.py left     what the change affects too, and what takes too long for the gate
    parts.py since    what the change is
    parts.py minutes  how long the gate takes with these parts
    parts.py list     all parts, for Tests/all
    parts.py table    all parts, for CONTRIBUTING.md
"""
import re, sys
from dataclasses import dataclass
from package import ROOT, Package, base, changed, git

# A longer part belongs to Tests/all, whatever the change is.
GATE_MINUTES = 8
# The gate without any part: from nothing, downloads included.
BASE_MINUTES = 18

# Matched with each changed file, and with the folder of each target that stands on what has changed.
DRIVERS = r"Sources/(SmartCardUSB|SmartCardPCSC|SmartCardPN532|CardReaders|SmartCardSimulatorHosts)/|udev/"
PAGE = r"Sources/KioskBridgeServer/|Examples/kiosk-page/|Tools/(kiosk-host|psp-sandbox)/|Tests/KioskBridgeServerTests/"
# Of these only the files themselves: everything stands below them.
MONEY = r"Sources/ProximityReader/Store/.|Sources/KioskKit/(Offline|TapToPay)/.|Sources/(CardReaderAdapter|PrivateFiles)/.|Tests/(KioskKit|ProximityReader)Tests/."
RUN = "Tests/run --built --complete --thorough"


@dataclass
class Part:
    name: str
    minutes: int
    proves: str
    command: str
    # The files whose change makes the gate run it; None: only Tests/all does.
    paths: str | None = None


PARTS = [
    Part("gate", 22, "all of `.ci/run` on a clean clone", "Tests/gate"),
    Part("fast", 6, "every promise once", "Tests/run --built --complete"),
    Part("machine", 2, "readers in a Linux kernel that runs in QEMU", f"{RUN} --excuse nothing KernelTests --skip Camera", DRIVERS + r"|Tests/KernelTests/"),
    Part("cameras", 1, "V4L2 cameras in the same machine", f"{RUN} --excuse nothing KernelTests --filter ^KernelTests.*Camera", r"Sources/(Cameras|CV4L2)/|Tests/KernelTests/"),
    Part("browser", 3, "the kiosk's page and service in Chromium, whole tours", f"{RUN} KioskBridgeServerTests", PAGE),
    Part("kills", 1, "programs killed at any moment, and full disks: no payment is lost or made twice",
         f"{RUN} --filter KillTests --filter StoreFaultTests KioskKitTests ProximityReaderTests", MONEY),
    Part("documents", 1, "every example in README, pages and doc comments compiles", f"{RUN} --filter DocumentedCodeTests ToolTests",
         r".*\.md$|.*\.docc/|Sources/.*\.swift$|Tests/ToolTests/DocumentedCode"),
    Part("packages", 2, "Debian packages: built of what is built, judged, installed, used, purged", "Tools/package-deb --built",
         r"debian/|systemd/|Package\.swift$|Tools/(package-deb|.*\.1)$"),
    Part("consumer", 2, "packages of others that depend on this one", "Tests/consumer", r"Package\.swift$|Tests/consumer$|README\.md$"),
    Part("thorough", 22, "all that computes or repeats for long", f"{RUN} --except KernelTests --except KioskBridgeServerTests"),
    Part("benchmarks", 10, "counts of the benchmarks, optimized", "Benchmarks/run --gate"),
    Part("ratios", 20, "times as ratios to C programs of the same run; needs a quiet machine", "Benchmarks/run"),
    Part("fuzz", 10, "published inputs of the fuzzer, under the address sanitizer", "Fuzz/replay"),
    Part("address", 25, "what parses foreign bytes, under the address sanitizer", "Tests/sanitize address"),
    Part("thread", 25, "what shares state, under the thread sanitizer", "Tests/sanitize thread"),
    Part("api", 12, "the public API against the last tag", "Tests/api"),
    Part("shake", 30, "what has ever failed by chance, fifty times beside two burning processes", "Tests/shake"),
]

# Modules whose tests a sanitizer builds and runs within the gate's minutes.
SANITIZED = {"Waiting": 2, "SmartCard": 3, "WalletPasses": 4, "CardEncryption": 4, "TravelDocumentImages": 4}
UNSAFE = re.compile(r"withUnsafe|Unsafe(Mutable)?(Raw)?(Buffer)?Pointer")
SHARED = re.compile(r"\b(Mutex|Lock)[<(]|@unchecked Sendable|nonisolated\(unsafe\)")


def sanitizers(files):
    """A module with a changed file that has an unsafe pointer, a lock or C: its tests under that sanitizer."""
    found = {}
    for file in files:
        path = ROOT / file
        if not re.match(r"Sources/.*\.(swift|c|h)$", file) or not path.exists():
            continue
        text = path.read_text(errors="replace")
        for name, concerned in [("address", not file.endswith(".swift") or UNSAFE.search(text)), ("thread", SHARED.search(text))]:
            if concerned:
                found.setdefault((name, file.split("/")[1]), file)
    package = Package() if found else None
    for (name, module), file in sorted(found.items()):
        # A module without tests of its own is tested by those of the modules that import it.
        users = [module] if module + "Tests" in package.tests else sorted(
            user for user, needs in package.needs.items() if module in needs and user + "Tests" in package.tests)
        if users:
            yield Part(f"{name} {module}", SANITIZED.get(module, 20), f"for {file}", f"Tests/sanitize {name} {' '.join(users)}")


def rows():
    """The table of CONTRIBUTING.md.  The minutes are those that Tests/all has written down."""
    yield "| part | proves | in the gate | minutes |"
    yield "|---|---|---|---|"
    yield f"| `.ci/run` from nothing, `Tests/all gate` | that all builds, format, links, `fast` | always | {BASE_MINUTES} |"
    for part in PARTS[1:]:
        when = "always" if part.name == "fast" else "where the change affects it" if part.paths else "no"
        yield f"| `Tests/all {part.name}` | {part.proves} | {when} | {part.minutes} |"


def affected():
    files = changed()
    places = files + Package().folders(files)
    parts = [part for part in PARTS if part.paths and any(re.match(part.paths, place) for place in places)]
    return parts + list(sanitizers(files))


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "list":
        for part in PARTS:
            print(part.name, part.minutes, part.command, part.proves, sep="\t")
    elif what == "table":
        print("\n".join(rows()))
    elif what == "plan":
        for part in affected():
            if part.minutes <= GATE_MINUTES:
                print(part.name, part.minutes, part.command, part.proves, sep="\t")
    elif what == "left":
        for part in affected():
            if part.minutes > GATE_MINUTES:
                print(f"{part.name} ({part.minutes} minutes, {part.proves})")
    elif what == "since":
        print(f"{len(changed())} files since {git('log', '-1', '--format=%h of %cs', base()) or 'nobody knows when'}")
    elif what == "minutes":
        print(BASE_MINUTES + sum(part.minutes for part in affected() if part.minutes <= GATE_MINUTES))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

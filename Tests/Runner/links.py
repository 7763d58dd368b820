"""Every link of a page to a file or a heading of this repository leads somewhere."""
import re, subprocess, sys
from package import ROOT

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.M | re.S)
LINK = re.compile(r"\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(<?([^)<>\s]+)>?(?: \"[^\"]*\")?\)")


def anchors(text):
    """The names by which GitHub links to headings."""
    for heading in re.findall(r"^#+ +(.*?) *#*$", FENCE.sub("", text), re.M):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        yield words.replace(" ", "-")


def main():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    count, faults = 0, []
    for page in (name for name in tracked if name.endswith(".md") and (ROOT / name).is_file()):
        text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", (ROOT / page).read_text()))
        for target in LINK.findall(text):
            if re.match(r"[a-z][a-z+.-]*:", target):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            file = (ROOT / page).parent / path if path else ROOT / page
            # DocC names an image by its name alone.
            if not file.exists() and not list((file.parent / "Resources").glob(file.name + ".*")):
                faults.append(f"{page}: there is no {target}")
            elif anchor and file.suffix == ".md" and anchor.lower() not in set(anchors(file.read_text())):
                faults.append(f"{page}: {path or page} has no heading #{anchor}")
    for fault in faults:
        print("error:", fault)
    print(f"{count} links of pages lead to files and headings" if not faults else f"{len(faults)} of {count} links lead nowhere")
    sys.exit(1 if faults or not count else 0)


if __name__ == "__main__":
    main()

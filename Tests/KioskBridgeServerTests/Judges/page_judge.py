#!/usr/bin/env python3
"""Judges the example page and its module in Debian's Chromium, against a host that does what a test says.

    page_judge.py                        all groups but those of the checkout
    page_judge.py --checkout             the groups of the checkout
    page_judge.py GROUP...               runs groups of checks; prints what was found, and exits with 1 if that is anything
    page_judge.py --list                 the groups
    page_judge.py --write                writes the accessibility trees anew
    page_judge.py --documentation        makes the pictures of README.md anew
    page_judge.py --pictures FOLDER      pictures of each view in both sizes of screen
"""
import asyncio
import json
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
for package in ["jsonschema", "axe-core-python"]:
    sys.path.append(str(HERE.parents[2] / ".build" / package))

import page_checks  # noqa: E402
from page_browser import Browser  # noqa: E402
from page_mock import SCHEMA, Host  # noqa: E402


def validator():
    import jsonschema

    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    sides = {side: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{side}", "$defs": schema["$defs"]})
             for side in ["fromPage", "fromHost"]}

    def faults(message, side):
        return [f"{message['payload'].get('action')}: {jsonschema.exceptions.best_match([error]).message[:200]}"
                for error in sides[side].iter_errors(message)]
    return faults


class Bench:
    """What a group of checks works with, and where it notes what is wrong."""

    def __init__(self, browser, validate):
        self.browser, self.validate, self.faults, self.notes = browser, validate, [], []
        self.hosts, self.pages = [], []

    async def host(self):
        host = await Host(self.validate).start()
        self.hosts.append(host)
        return host

    async def page(self, host, query="", **options):
        page = await self.browser.page(f"{host.origin}/{query}", **options)
        page.mark = host.mark
        self.pages.append(page)
        return page

    def expect(self, truth, what):
        if not truth:
            self.faults.append(str(what))

    async def end(self):
        for page in self.pages:
            # A link that a test cuts is a network error; nothing else is ever written.
            lines = [one for one in page.console if "WebSocket connection to" not in one and "Failed to load" not in one]
            self.faults += [f"console: {line}" for line in lines]
            await page.close()
        for host in self.hosts:
            self.faults += host.faults
            host.stop()


async def run(groups, arguments):
    validate = validator()
    browser = await Browser().start()
    failed = []

    async def lane(names):
        for name in [one for one in names if one in groups]:
            bench, start = Bench(browser, validate), time.monotonic()
            try:
                await page_checks.GROUPS[name](bench, *arguments)
            except AssertionError as error:
                bench.faults.append(str(error))
            except Exception:
                bench.faults.append(traceback.format_exc())
            await bench.end()
            said = [*bench.notes, *(f"FAULT {fault}" for fault in bench.faults),
                    f"{'failed' if bench.faults else 'passed'} after {time.monotonic() - start:.1f} s"]
            print("\n".join(f"{name}: {line}" for text in said for line in text.splitlines()), flush=True)
            failed.extend(bench.faults)

    try:
        await lane([*page_checks.ALONE, "write", "pictures", "documentation"])
        await asyncio.gather(*[lane(names) for names in page_checks.LANES])
    finally:
        await browser.stop()
    return bool(failed)


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(page_checks.CHECKS))
        return 0
    if arguments == ["--checkout"]:
        return asyncio.run(run(list(page_checks.CHECKOUT), []))
    if arguments == ["--write"]:
        return asyncio.run(run(["write"], []))
    if arguments == ["--documentation"]:
        return asyncio.run(run(["documentation"], []))
    if arguments[:1] == ["--pictures"]:
        return asyncio.run(run(["pictures"], [Path(arguments[1])]))
    return asyncio.run(run(arguments or page_checks.CHECKS, []))


sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""What python-escpos sends for commands, one of a list on standard input (JSON) after the other, in hexadecimal.

    escpos_reference.py FOLDER-OF-PYTHON-ESCPOS < COMMANDS
"""
import json
import sys

sys.path.insert(0, sys.argv[1])
from escpos.printer import Dummy  # noqa: E402

printer = Dummy()
for command in json.load(sys.stdin):
    name, value = command["name"], command.get("value")
    if name == "initialize":
        printer.hw("INIT")
    elif name == "page":
        printer.charcode(value)
    elif name == "text":
        printer.text(value)
    elif name == "align":
        printer.set(align=value)
    elif name == "bold":
        printer.set(bold=value)
    elif name == "tall":
        printer.set(custom_size=True, width=1, height=2 if value else 1)
    elif name == "feed":
        printer.print_and_feed(value)
    elif name == "ascii":
        # Before there is a page; text() would choose one.
        printer._raw(value.encode("ascii"))
    elif name == "cut":
        printer.cut()
    elif name == "cutAtCutter":
        printer.cut(feed=False)
    elif name == "drawer":
        printer.cashdraw(value)
    elif name == "code":
        printer.qr(value, native=True, size=6, ec=1)
    else:
        raise ValueError(name)
print(printer.output.hex())

#!/usr/bin/env python3
"""How wide text is, and where it is wrapped, by Unicode's tables and Python's textwrap.

    layout.py width < LINES           the columns of each line
    layout.py wrap COLUMNS < LINES    each line wrapped, with an empty line behind it
"""
import sys
import textwrap
import unicodedata


def width(text):
    columns = 0
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return columns


for line in sys.stdin.read().split("\n")[:-1]:
    if sys.argv[1] == "width":
        print(width(line))
    else:
        wrapped = textwrap.wrap(line, int(sys.argv[2]), break_long_words=True, break_on_hyphens=False)
        print("\n".join(wrapped + [""]))

"""Has nfcpy, unchanged but for its patience, open a reader, find a card and read its NDEF data.

    nfcpy-read.py tty /dev/pts/3     a PN532 board (driver pn532)
    nfcpy-read.py usb                an ACR122U (driver acr122)
"""
import sys

import nfc.clf
import nfc.tag
import opened

clf = opened.reader(*sys.argv[1:])
print("chipset", clf.device.chipset_name)
targets = [nfc.clf.RemoteTarget(rate) for rate in ("106A", "106B", "212F")]
if sys.argv[1] == "usb":
    # Its driver for the ACR122U looks for no cards of type B.
    targets = [t for t in targets if t.brty != "106B"]
target = clf.sense(*targets, iterations=3, interval=0.1)
print("target", target)
tag = nfc.tag.activate(clf, target) if target else None
print("tag", tag)
if tag is not None and tag.ndef is not None:
    for record in tag.ndef.records:
        print("record", record)
clf.close()

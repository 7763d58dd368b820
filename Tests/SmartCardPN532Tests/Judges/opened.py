"""Opens a reader with nfcpy, whose limits are those of a wire and a chip: here both are a process, which waits for its turn."""
import nfc.clf
import nfc.clf.pn532
import nfc.clf.transport


def patient(read):
    # 0: without a limit.
    return lambda self, timeout=0: read(self, timeout and 60_000)


for link in [nfc.clf.transport.TTY, nfc.clf.transport.USB]:
    link.read = patient(link.read)


def reader(kind, path=None):
    if kind == "usb":
        return nfc.clf.ContactlessFrontend("usb:072f:2200")
    # nfcpy looks for serial lines in /dev alone, and this one is in /dev/pts.
    clf = nfc.clf.ContactlessFrontend()
    clf.device = nfc.clf.pn532.init(nfc.clf.transport.TTY(path))
    clf.device._path = path
    return clf

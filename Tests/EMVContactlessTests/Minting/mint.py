#!/usr/bin/env python3
"""Mints cards of a test certification authority: certificates and signatures as EMV Book 2 has them.

It is written from EMV Book 2 (tables 2, 3, 6, 7, 11, 14, 15, 17, 19) and EMV Contactless Book C-3, Annex C, apart from the
code that it tests, in whole numbers and without a library.  Everything comes from one seed, so that it writes the same
files each time:

    ./mint.py                 writes minted.json and test-ca.keys beside itself
    ./mint.py card CHAIN --pan 4761739001010010 --expires 3112 --static HEX
                              prints the certificates of another card of that chain, for a card file

THE KEYS ARE TEST KEYS.  Their private halves are published here, so they protect nothing.  No terminal that takes money
may know them.
"""
import argparse
import hashlib
import json
import pathlib
import random

SEED = 20260101


# Numbers and keys


def is_prime(n, rng):
    for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        if n % p == 0:
            return n == p
    d, r = n - 1, 0
    while d % 2 == 0:
        d, r = d // 2, r + 1
    for _ in range(24):
        x = pow(rng.randrange(2, n - 1), d, n)
        if x in (1, n - 1):
            continue
        for _ in range(r - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime(bits, e, rng):
    while True:
        n = rng.getrandbits(bits) | 3 << bits - 2 | 1
        if (n - 1) % e and is_prime(n, rng):
            return n


class Key:
    def __init__(self, bits, e):
        rng = random.Random(f"{SEED} {bits} {e} {Key.count}")
        Key.count += 1
        self.p, self.q = prime((bits + 1) // 2, e, rng), prime(bits // 2, e, rng)
        self.n, self.e = self.p * self.q, e
        self.d = pow(e, -1, (self.p - 1) * (self.q - 1))
        self.length = (self.n.bit_length() + 7) // 8
        assert self.n.bit_length() == bits

    count = 0

    @property
    def modulus(self):
        return self.n.to_bytes(self.length, "big")

    @property
    def exponent(self):
        return self.e.to_bytes((self.e.bit_length() + 7) // 8, "big")

    def sign(self, block):
        """EMV Book 2, B2.1.2."""
        assert len(block) == self.length, (len(block), self.length)
        return pow(int.from_bytes(block, "big"), self.d, self.n).to_bytes(self.length, "big")

    def json(self):
        return {
            "modulus": hexa(self.modulus), "exponent": hexa(self.exponent), "privateExponent": f"{self.d:X}",
            "prime1": f"{self.p:X}", "prime2": f"{self.q:X}",
        }


def hexa(data):
    return data.hex().upper()


def sha1(*parts):
    return hashlib.sha1(b"".join(parts)).digest()


def tlv(tag, value, length=None):
    n = len(value)
    if length is None:
        length = bytes([n]) if n < 128 else bytes([0x81, n]) if n < 256 else bytes([0x82, n >> 8, n & 255])
    return bytes.fromhex(tag) + length + value


def packed(digits, length):
    return bytes.fromhex(digits.ljust(length * 2, "F"))


# Book 2


class Form:
    """What may be made wrong in a structure: by name, and read where the structure is made."""

    def __init__(self, **wrong):
        self.wrong = wrong

    def __call__(self, name, right):
        return self.wrong.get(name, right)


def frame(signer, message, rest, form):
    """EMV Book 2, A2.1.2: 6A, message, hash over message and rest, BC."""
    digest = bytearray(sha1(message, form("rest", rest)))
    digest[0] ^= form("hash", 0)
    block = bytes([form("header", 0x6A)]) + message + bytes(digest) + bytes([form("trailer", 0xBC)])
    return signer.sign(block)


def certificate(signer, key, identifier, format, expires, serial, static=b"", form=Form()):
    """Tables 2 and 11: returns certificate, remainder, exponent."""
    room = signer.length - 22 - 1 - len(identifier) - 9
    modulus = form("modulus", key.modulus)
    part = modulus[:room].ljust(room, b"\xBB")
    remainder = form("remainder", modulus[room:])
    exponent = form("exponent", key.exponent)
    message = (
        bytes([form("format", format)]) + form("identifier", identifier) + bytes.fromhex(form("expires", expires))
        + bytes.fromhex(serial)
        + bytes([form("hashAlgorithm", 1), form("keyAlgorithm", 1), form("keyLength", key.length),
                 form("exponentLength", len(exponent))])
        + part
    )
    return frame(signer, message, remainder + exponent + static, form), remainder, exponent


def signed_static(signer, code, static, form=Form()):
    """Tables 3 and 7."""
    message = bytes([form("format", 3), form("hashAlgorithm", 1)]) + code + b"\xBB" * (signer.length - 26)
    return frame(signer, message, static, form)


def signed_dynamic(signer, dynamic, terminal, format=5, form=Form()):
    """Tables 15 and 17."""
    message = bytes([form("format", format), form("hashAlgorithm", 1), form("length", len(dynamic))]) + dynamic
    return frame(signer, message.ljust(signer.length - 22, b"\xBB"), terminal, form)


def dynamic_number(number):
    return bytes([len(number)]) + number


# Cards


class Chain:
    """A CA key, an issuer and a card.  Sizes in bits."""

    def __init__(self, name, rid, index, ca, issuer, icc, pan, identifier, has_pan=True, has_list=True):
        self.name, self.rid, self.index = name, bytes.fromhex(rid), index
        self.ca, self.issuer, self.icc = Key(*ca), Key(*issuer), Key(*icc)
        self.pan, self.identifier, self.has_pan, self.has_list = pan, pan[:identifier], has_pan, has_list

    aip = bytes.fromhex("3D01")

    def records(self):
        """The signed records: with filling inside the template, with a length longer than it need be, and of file 11."""
        track2 = self.pan + "D31122010000"
        track2 = bytes.fromhex(track2 + "F" * (len(track2) % 2))
        first = tlv("57", track2) + tlv("5F24", bytes.fromhex("311231")) + b"\x00\x00\x00"
        if self.has_pan:
            first = tlv("5A", packed(self.pan, (len(self.pan) + 1) // 2)) + first
        second = tlv("5F28", bytes.fromhex("0840")) + tlv("9F07", bytes.fromhex("FFC0"))
        third = tlv("9F0D", bytes.fromhex("F040000800"))
        return [(1, tlv("70", first)), (2, tlv("70", second, bytes([0x82, 0, len(second)]))), (11, tlv("70", third))]

    def static(self):
        """EMV Book 3, 10.3."""
        (_, first), (_, second), (_, third) = self.records()
        return first[2:] + second[4:] + third + (self.aip if self.has_list else b"")

    def issuer_certificate(self, **wrong):
        c, r, e = certificate(self.ca, self.issuer, packed(self.identifier, 4), 2, "1231", "0A0B0C", form=Form(**wrong))
        return {"90": c, "92": r, "9F32": e}

    def icc_certificate(self, static=None, expires="1130", pan=None, **wrong):
        c, r, e = certificate(
            self.issuer, self.icc, packed(pan or self.pan, 10), 4, expires, "000102",
            self.static() if static is None else static, Form(**wrong))
        return {"9F46": c, "9F48": r, "9F47": e}

    def pin_certificate(self, **wrong):
        c, r, e = certificate(
            self.issuer, self.icc, packed(self.pan, 10), 4, "1130", "000103", form=Form(**wrong))
        return {"9F2D": c, "9F2F": r, "9F2E": e}

    def objects(self):
        """What the card gives, but for empty remainders."""
        given = {"8F": bytes([self.index]), "82": self.aip, "57": b"", **self.issuer_certificate()}
        given["57"] = bytes.fromhex((self.pan + "D31122010000").ljust((len(self.pan) + 13) // 2 * 2, "F"))
        if self.has_pan:
            given["5A"] = packed(self.pan, (len(self.pan) + 1) // 2)
        if self.has_list:
            given["9F4A"] = b"\x82"
        given.update(self.icc_certificate())
        given.update(self.pin_certificate())
        given["93"] = signed_static(self.issuer, b"\xDA\xC5", self.static())
        return {tag: value for tag, value in given.items() if value}


UN = bytes.fromhex("01234567")
TERMINAL = {"9F37": UN, "9F02": bytes.fromhex("000000001234"), "5F2A": bytes.fromhex("0978")}
RELATED = bytes.fromhex("01AABBCCDD8000")
PDOL_DATA = bytes.fromhex("36000000 000000001234 01234567")
CDOL1_DATA = bytes.fromhex("000000001234 000000000000 0276 0000000000 0978 260115 00 01234567")
CDOL2_DATA = bytes.fromhex("3030 0000008000 89ABCDEF")
CRYPTOGRAM = bytes.fromhex("1122334455667788")


def response(chain, cid=0x80, transaction=PDOL_DATA + CDOL1_DATA, un=UN, number=bytes.fromhex("C0FFEE00C0FFEE00"),
             more=b"", signed_cid=None, dynamic=None, **wrong):
    """GENERATE AC with CDA: 9F10 has a longer length field than it need have, and there is filling between objects."""
    before = tlv("9F27", bytes([cid])) + b"\x00"
    counter = tlv("9F36", bytes.fromhex("0011"))
    after = tlv("9F10", bytes.fromhex("06010A03A00000"), b"\x81\x07")
    code = sha1(transaction, tlv("9F27", bytes([cid])), counter, after)
    if dynamic is None:
        dynamic = dynamic_number(number) + bytes([cid if signed_cid is None else signed_cid]) + CRYPTOGRAM + code + more
    sdad = signed_dynamic(chain.icc, dynamic, un, form=Form(**wrong))
    return tlv("77", before + counter + tlv("9F4B", sdad) + after)


def signature(chain):
    """The signature in the response."""
    return response(chain).split(bytes.fromhex("9F4B8190"))[1][:144]


def fdda(chain, format=5, related=RELATED, **wrong):
    terminal = TERMINAL["9F37"] + TERMINAL["9F02"] + TERMINAL["5F2A"] + related
    return signed_dynamic(chain.icc, dynamic_number(bytes.fromhex("0011")), terminal, format, Form(**wrong))


def dda(chain, number=bytes.fromhex("0102030405060708"), dynamic=None, **wrong):
    return signed_dynamic(chain.icc, dynamic or dynamic_number(number), UN, form=Form(**wrong))


def chains():
    return [
        # Remainders for both certificates.
        Chain("ordinary", "A000000003", 0xE1, (1408, 3), (1408, 3), (1152, 3), "4761739001010010", 6),
        # Odd sizes, 65537 throughout, an odd number of digits in identifier and account number.
        Chain("odd", "A000000003", 0xE2, (1152, 65537), (1008, 65537), (992, 65537), "476173900101002", 7),
        # Filled with BB, no remainder; track 2 alone; the shortest identifier, the longest account number; no 9F4A.
        Chain("filled", "A000000003", 0xE3, (1984, 3), (1408, 3), (640, 3), "4761739001010000003", 3, False, False),
        # Keys that fit exactly; the longest identifier, a short account number.
        Chain("exact", "A000000004", 0xE1, (1408, 3), (1120, 3), (784, 3), "541333900000007", 8),
        # The longest keys.
        Chain("longest", "A000000004", 0xE2, (1984, 65537), (1984, 65537), (1984, 3), "5413330089020011", 5),
        # Numbers of bytes that are odd, and 65537 below 3.
        Chain("bytes", "A000000004", 0xE3, (1016, 3), (904, 3), (808, 65537), "5413330089020029", 4),
    ]


def swapped(signer, value):
    """What is found out about a signature that another key made: it is no number below this modulus, or ends wrongly."""
    block = int.from_bytes(value, "big")
    if block >= signer.n:
        return "range"
    assert pow(block, signer.e, signer.n) & 0xFF != 0xBC
    return "trailer"


def absurd(modulus, value):
    """As swapped, for a key that is none."""
    n, block = int.from_bytes(modulus, "big"), int.from_bytes(value, "big")
    if block >= n:
        return "range"
    assert pow(block, 3, n) & 0xFF != 0xBC
    return "trailer"


def failures(chain, other, stranger):
    """Cards of the chain with one thing wrong, signed as if it were right: objects that differ, and what fails."""
    def issuer(reason, **wrong):
        return "issuerCertificate", reason, chain.issuer_certificate(**wrong)

    def icc(reason, **wrong):
        return "iccCertificate", reason, chain.icc_certificate(**wrong)

    def static(reason, **wrong):
        return "signedStaticData", reason, {"93": signed_static(chain.issuer, b"\xDA\xC5", chain.static(), Form(**wrong))}

    table = []
    for make in (issuer, icc):
        table += [
            make("header", header=0x6B), make("trailer", trailer=0xBD), make("format", format=6), make("hash", hash=1),
            make("hashAlgorithm", hashAlgorithm=2), make("keyAlgorithm", keyAlgorithm=2), make("expired", expires="1225"),
            make("malformed", expires="1331"), make("malformed", expires="0000"), make("malformed", expires="1A30"),
            make("exponent", exponentLength=3), make("exponent", exponent=b"\x11"), make("exponent", exponent=b"\x02"),
            make("keyLength", keyLength=249), make("keyLength", keyLength=0), make("keyLength", remainder=b"\x55"),
        ]
    table += [
        # A byte more than the key needs, signed along with it.
        issuer("keyLength", remainder=chain.issuer.modulus[chain.ca.length - 36:] + b"\x55"),
        icc("keyLength", remainder=chain.icc.modulus[chain.issuer.length - 42:] + b"\x55"),
        # The format of the other certificate.
        issuer("format", format=4), icc("format", format=2),
        # Identifiers: another issuer's, two digits, none, filling before a digit, a letter.
        issuer("accountNumber", identifier=bytes.fromhex("476174FF")),
        issuer("accountNumber", identifier=bytes.fromhex("47FFFFFF")),
        issuer("accountNumber", identifier=bytes.fromhex("FFFFFFFF")),
        issuer("accountNumber", identifier=bytes.fromhex("4761F3FF")),
        issuer("accountNumber", identifier=bytes.fromhex("4761A3FF")),
        # Of the eight digits the last is another.
        issuer("accountNumber", identifier=bytes.fromhex("47617391")),
        # Another card's number, one that goes on, one that stops short.
        icc("accountNumber", pan="4761739001010028"), icc("accountNumber", pan="47617390010100100"),
        icc("accountNumber", pan="476173900101001"),
        icc("accountNumber", identifier=bytes.fromhex("4761739001010010F1FF")),
        icc("hash", static=chain.static() + b"\x00"), icc("hash", static=chain.static()[:-2]),
        static("header", header=0), static("trailer", trailer=0), static("format", format=5), static("hash", hash=0x80),
        static("hashAlgorithm", hashAlgorithm=0), static("hash", rest=chain.static()[:-2]),
        # Whole certificates of another CA and issuer.
        ("issuerCertificate", "length", {"90": other.issuer_certificate()["90"]}),
        ("iccCertificate", "length", {"9F46": other.icc_certificate()["9F46"]}),
        # Of another issuer under the same CA: for his account numbers, and for those of this one.
        ("issuerCertificate", "accountNumber", stranger.issuer_certificate()),
        ("iccCertificate", swapped(stranger.issuer, chain.icc_certificate()["9F46"]),
         stranger.issuer_certificate(identifier=packed(chain.identifier, 4))),
        ("iccCertificate", swapped(chain.issuer, stranger.icc_certificate()["9F46"]), stranger.icc_certificate()),
        ("signedStaticData", swapped(
            chain.issuer, signed_static(stranger.issuer, b"\xDA\xC5", chain.static())),
         {"93": signed_static(stranger.issuer, b"\xDA\xC5", chain.static())}),
        # An issuer whose key is too short to sign, and ones whose modulus is 0, 1, even or full of ones.
        ("iccCertificate", "length", chain.issuer_certificate(keyLength=20)),
    ] + [
        ("iccCertificate", absurd(modulus, chain.icc_certificate()["9F46"]), chain.issuer_certificate(modulus=modulus))
        for modulus in (
            bytes(176), bytes(175) + b"\x01", chain.issuer.modulus[:-1] + bytes([chain.issuer.modulus[-1] & 0xFE]),
            b"\xFF" * 176)
    ] + [
        # The parts changed for each other.
        ("issuerCertificate", swapped(chain.ca, chain.icc_certificate()["9F46"]),
         {"90": chain.icc_certificate()["9F46"]}),
        ("iccCertificate", "format", {"9F46": signed_static(chain.issuer, b"\xDA\xC5", chain.static())}),
        ("signedStaticData", "format", {"93": chain.icc_certificate()["9F46"]}),
    ]
    return [{"subject": s, "reason": r, "objects": {t: hexa(v) for t, v in o.items()}} for s, r, o in table]


def tiny(ca):
    """Keys that are too short for what they sign: of the issuer, 20 bytes, and of the card, 24; 25 are just enough for nothing."""
    def block(length, format):
        return (bytes([0x6A, format, 1, 0]) + bytes(length))[:length - 1] + b"\xBC"

    issuer = Chain("tiny issuer", "A000000003", 0xE1, (512, 3), (160, 3), (512, 3), "4761739001010010", 6)
    icc = Chain("tiny card", "A000000003", 0xE1, (512, 3), (1408, 3), (192, 3), "4761739001010010", 6)
    least = Chain("least card", "A000000003", 0xE1, (512, 3), (1408, 3), (200, 3), "4761739001010010", 6)
    issuer.ca = icc.ca = least.ca = ca
    return {
        "issuer": {
            **issuer.issuer_certificate(), "9F46": issuer.issuer.sign(block(20, 4)), "9F48": b"", "9F47": b"\x03",
            "93": issuer.issuer.sign(block(20, 3)),
        },
        "card": {**icc.issuer_certificate(), **icc.icc_certificate(), "9F4B": icc.icc.sign(block(24, 5))},
        "least": {**least.issuer_certificate(), **least.icc_certificate(), "9F4B": signed_dynamic(least.icc, b"", UN)},
    }


def dynamic_failures(chain, stranger):
    """Signed dynamic data with one thing wrong, each for DDA, CDA and fDDA."""
    number = dynamic_number(b"\x01\x02")
    short = {
        "dynamicNumber": [b"\x01\x07", b"\x00", b"\x09" + b"\x07" * 9, b"\xFF" + b"\x07" * 8],
        "dynamicData": [b"\x08\x01\x02"],
    }
    common = [
        ("header", dict(header=0x6B)), ("trailer", dict(trailer=0xBB)), ("format", dict(format=3)),
        ("hashAlgorithm", dict(hashAlgorithm=2)), ("hash", dict(hash=1)), ("dynamicData", dict(length=255)),
        ("dynamicData", dict(length=chain.icc.length - 24)),
    ]
    table = []
    for kind, make in (("dda", dda), ("fdda", fdda)):
        table += [(kind, r, make(chain, **w)) for r, w in common]
    table += [("cda", r, response(chain, **w)) for r, w in common]
    table += [("dda", "dynamicData", dda(chain, length=0))]
    table += [("dda", r, dda(chain, dynamic=d)) for r, many in short.items() for d in many]
    table += [("cda", r, response(chain, dynamic=d)) for r, many in short.items() for d in many]
    table += [
        ("cda", "dynamicData", response(chain, dynamic=number + b"\x80" + CRYPTOGRAM + bytes(19))),
        ("cda", "cryptogramInformationData", response(chain, cid=0x40, signed_cid=0x80)),
        ("cda", "transactionData", response(chain, transaction=PDOL_DATA)),
        ("cda", "transactionData", response(chain, dynamic=number + b"\x80" + CRYPTOGRAM + bytes(20))),
        ("cda", "hash", response(chain, un=bytes(4))),
        ("dda", swapped(chain.icc, dda(stranger)), dda(stranger)), ("dda", "length", dda(stranger)[1:]),
        ("fdda", swapped(chain.icc, fdda(stranger)), fdda(stranger)), ("fdda", "length", b"\x00" + fdda(chain)),
        ("cda", swapped(chain.icc, signature(stranger)), response(stranger)),
        ("fdda", "format", fdda(chain, format=0x95)), ("fdda", "hash", fdda(chain, related=RELATED[:6] + b"\x01")),
    ]
    return [{"method": m, "reason": r, "value": hexa(v)} for m, r, v in table]


def card(chain):
    return {
        "name": chain.name, "rid": hexa(chain.rid), "index": f"{chain.index:02X}",
        "caKey": chain.ca.json(), "caChecksum": hexa(sha1(
            chain.rid, bytes([chain.index]), chain.ca.modulus, chain.ca.exponent)),
        "issuerKey": chain.issuer.json(), "iccKey": chain.icc.json(),
        "records": [{"sfi": sfi, "bytes": hexa(record)} for sfi, record in chain.records()],
        "objects": {tag: hexa(value) for tag, value in chain.objects().items()},
        "dda": hexa(dda(chain)), "fddaOffline": hexa(fdda(chain)), "fddaOnline": hexa(fdda(chain, 0x95)),
        # The ICC dynamic data of CDA: 1 + 8 + 1 + 8 + 20 bytes, and what another kernel puts behind.
        "cdaFirst": hexa(response(chain, more=b"\xA5\x5A" if chain.icc.length >= 128 else b"")),
        "cdaSecond": hexa(response(
            chain, cid=0x40, transaction=PDOL_DATA + CDOL1_DATA + CDOL2_DATA, un=CDOL2_DATA[-4:], number=b"\x01\x02")),
    }


def write(folder):
    all = chains()
    ordinary = all[0]
    stranger = Chain("stranger", "A000000003", 0xE1, (512, 3), (1408, 3), (1152, 3), "4000000000000002", 6)
    stranger.ca = ordinary.ca
    document = {
        "warning": "TEST keys: the private halves are published here.  Written by mint.py.",
        "terminal": {tag: hexa(value) for tag, value in TERMINAL.items()},
        "cardAuthenticationRelatedData": hexa(RELATED), "pdolData": hexa(PDOL_DATA), "cdol1Data": hexa(CDOL1_DATA),
        "cdol2Data": hexa(CDOL2_DATA), "cryptogram": hexa(CRYPTOGRAM),
        "cards": [card(chain) for chain in all],
        "failures": failures(ordinary, all[1], stranger),
        "dynamicFailures": dynamic_failures(ordinary, stranger),
        # As long as the key permits: without padding.
        "fullDDA": hexa(dda(ordinary, dynamic=dynamic_number(b"\x01\x02") + bytes(ordinary.icc.length - 28))),
        "tiny": {who: {tag: hexa(value) for tag, value in objects.items()} for who, objects in tiny(ordinary.ca).items()},
    }
    (folder / "minted.json").write_text(json.dumps(document, indent=1) + "\n")

    lines = [
        "# TEST keys, whose private halves are in minted.json beside this file.  A terminal that takes money must not",
        "# know them.  Written by mint.py.",
    ]
    for chain in all:
        checksum = hexa(sha1(chain.rid, bytes([chain.index]), chain.ca.modulus, chain.ca.exponent))
        digits = hexa(chain.ca.modulus)
        lines += [
            "", f"key test {hexa(chain.rid)} {chain.index:02X} exponent {hexa(chain.ca.exponent)} checksum {checksum}",
        ] + [
            ("    modulus " if i == 0 else " " * 12) + digits[i:i + 96] for i in range(0, len(digits), 96)
        ]
    (folder / "test-ca.keys").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", nargs="?", choices=["card"])
    parser.add_argument("chain", nargs="?")
    parser.add_argument("--pan")
    parser.add_argument("--expires", help="YYMM")
    parser.add_argument("--static", default="", help="records as EMV Book 3, 10.3 has them, with the AIP where 9F4A is")
    arguments = parser.parse_args()
    if arguments.command is None:
        return write(pathlib.Path(__file__).resolve().parent)
    chain = next(c for c in chains() if c.name == arguments.chain)
    pan = arguments.pan or chain.pan
    chain.identifier = pan[:len(chain.identifier)]
    static = bytes.fromhex(arguments.static)
    expires = (arguments.expires or "3112")[2:] + (arguments.expires or "3112")[:2]
    objects = {"8F": bytes([chain.index]), **chain.issuer_certificate(expires=expires),
               **chain.icc_certificate(static, expires, pan),
               "93": signed_static(chain.issuer, b"\xDA\xC5", static)}
    for tag, value in objects.items():
        if value:
            print(tag, hexa(value))
    for name, value in (("modulus", chain.icc.n), ("private exponent", chain.icc.d)):
        print(f"# ICC {name} (TEST): {value:X}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes Kernel3Vectors.swift: a test card that signs, with the keys and certificates behind it.

    python3 Tests/EMVContactlessTests/Vectors/kernel3.py > Tests/EMVContactlessTests/Kernel3Vectors.swift

Written from EMV Book 2, 5.1, 5.4, 6.1 and 6.5.1 and EMV Contactless Book C-3, Annex C, with nothing but Python's integers
and SHA-1.  The keys come from a seed, are far too short for any other use, and are test values.
"""
import hashlib
import random

rng = random.Random("Kernel 3")


def is_prime(n):
    if any(n % p == 0 for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)):
        return False
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for _ in range(32):
        x = pow(rng.randrange(2, n - 1), d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime(bits):
    while True:
        n = rng.getrandbits(bits) | 3 << bits - 2 | 1
        if n % 3 == 2 and is_prime(n):
            return n


class Key:
    """An RSA key with exponent 3."""

    def __init__(self, length):
        p, q = prime(length * 4), prime(length * 4)
        self.length, self.n = length, p * q
        self.d = pow(3, -1, (p - 1) * (q - 1))
        self.modulus = self.n.to_bytes(length, "big")

    def sign(self, message, rest=b""):
        """EMV Book 2, A2.1: what does not fit into `message` is `rest`; it takes part in the hash only."""
        assert len(message) == self.length - 22
        recovered = b"\x6A" + message + hashlib.sha1(message + rest).digest() + b"\xBC"
        return pow(int.from_bytes(recovered, "big"), self.d, self.n).to_bytes(self.length, "big")

    def certify(self, format, identifier, key, static=b""):
        """The certificate of `key`, and the remainder of its modulus."""
        fields = bytes([format]) + identifier + bytes.fromhex("1231 000001 01 01") + bytes([key.length, 1])
        room = self.length - 22 - len(fields)
        message = fields + key.modulus[:room].ljust(room, b"\xBB")
        remainder = key.modulus[room:]
        return self.sign(message, remainder + b"\x03" + static), remainder


h = bytes.fromhex
authority, issuer, card = Key(112), Key(96), Key(80)
rid, index = h("A000000003"), h("F1")
checksum = hashlib.sha1(rid + index + authority.modulus + b"\x03").digest()

# Expires 2031-12-31; issued in Germany; domestic cash, goods, services and cashback, and ATMs; the AIP is signed as well.
record = h("5F2403311231 5F28020276 9F0702AB80 9F4A0182")
issuer_certificate, issuer_remainder = authority.certify(2, h("47617390"), issuer)
dda = h("2000")
icc_certificate, icc_remainder = issuer.certify(4, h("4761739001010010FFFF"), card, record + dda)
sda = h("4000")


def ssad(format):
    """Over the record; data authentication code DAC0."""
    message = bytes([format]) + h("01 DAC0")
    return issuer.sign(message.ljust(issuer.length - 22, b"\xBB"), record + sda)


def sdad(format, related):
    """Over the terminal's unpredictable number, 12.34, EUR, and the card's 9F69."""
    terminal = h("11223344 000000001234 0978")
    dynamic = h("02 0042")
    message = bytes([format, 1, len(dynamic)]) + dynamic
    return card.sign(message.ljust(card.length - 22, b"\xBB"), terminal + related)


related = h("01 CAFEBABE 0000")
confirmed = h("01 CAFEBABE 0080")
legacy = h("00 CAFEBABE 0000")

vectors = [
    ("caModulus", "The certification authority's key, index F1 of Visa's RID, exponent 3.", authority.modulus),
    ("caChecksum", "SHA-1 over RID, index, modulus and exponent.", checksum),
    ("record", "The record that is signed: 5F24, 5F28, 9F07, 9F4A.", record),
    ("issuerCertificate", "Tag 90.", issuer_certificate),
    ("issuerRemainder", "Tag 92.", issuer_remainder),
    ("iccCertificate", "Tag 9F46, for AIP 2000.", icc_certificate),
    ("iccRemainder", "Tag 9F48.", icc_remainder),
    ("offlineStaticSignature", "Tag 93, format 03, for AIP 4000.", ssad(0x03)),
    ("onlineStaticSignature", "Tag 93, format 93, for AIP 4000.", ssad(0x93)),
    ("related", "Tag 9F69: version 01, the card's unpredictable number, CTQ 0000.", related),
    ("offlineSignature", "Tag 9F4B, format 05, over `related`.", sdad(0x05, related)),
    ("onlineSignature", "Tag 9F4B, format 95, over `related`.", sdad(0x95, related)),
    ("confirmedRelated", "Tag 9F69 with CTQ 0080: the device has verified the cardholder.", confirmed),
    ("confirmedSignature", "Tag 9F4B, format 05, over `confirmedRelated`.", sdad(0x05, confirmed)),
    ("legacyRelated", "Tag 9F69 of fDDA version 00.", legacy),
    ("legacySignature", "Tag 9F4B, format 05, over `legacyRelated`.", sdad(0x05, legacy)),
]

print("// Made by Vectors/kernel3.py; not to be changed by hand.")
print()
print("/// A test card that signs, for the transaction of ``Kernel3Bench``.  Keys, account number and signatures are test values.")
print("enum Kernel3Vectors {")
for position, (name, comment, value) in enumerate(vectors):
    if position:
        print()
    digits = value.hex().upper()
    print(f"    /// {comment}")
    if len(digits) <= 64:
        print(f'    static let {name} = "{digits}"')
    else:
        print(f'    static let {name} = """')
        for start in range(0, len(digits), 96):
            print("        " + digits[start:start + 96])
        print('        """')
print("}")

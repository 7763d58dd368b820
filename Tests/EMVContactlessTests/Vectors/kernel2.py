#!/usr/bin/env python3
"""Makes Kernel2Vectors.swift: a test card that signs its cryptograms, with the keys and certificates behind it.

    python3 Tests/EMVContactlessTests/Vectors/kernel2.py > Tests/EMVContactlessTests/Kernel2Vectors.swift

Written from EMV Book 2, 5.1, 6.1 and 6.6.1, and EMV Contactless Book C-2, 8, with nothing but Python's integers and SHA-1,
and the program openssl for DES and AES.  What the terminal is to send for PDOL and CDOL1 stands here in full.  The keys come
from a seed, are far too short for any other use, and are test values; so is the account number, which Mastercard publishes.
"""
import hashlib
import random
import subprocess

rng = random.Random("Kernel 2")
h = bytes.fromhex


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
        assert len(message) == self.length - 22
        recovered = b"\x6A" + message + hashlib.sha1(message + rest).digest() + b"\xBC"
        return pow(int.from_bytes(recovered, "big"), self.d, self.n).to_bytes(self.length, "big")

    def certify(self, format, identifier, key, static=b""):
        fields = bytes([format]) + identifier + h("1231 000001 01 01") + bytes([key.length, 1])
        room = self.length - 22 - len(fields)
        message = fields + key.modulus[:room].ljust(room, b"\xBB")
        remainder = key.modulus[room:]
        return self.sign(message, remainder + b"\x03" + static), remainder


def tlv(tag, value):
    length = bytes([len(value)]) if len(value) < 128 else bytes([0x81, len(value)])
    return h(tag) + length + value


def cipher(name, key, message):
    return subprocess.run(
        ["openssl", "enc", "-" + name, "-K", key.hex(), "-nopad"], input=message, capture_output=True, check=True).stdout


authority, issuer, card = Key(152), Key(144), Key(136)
rid, index = h("A000000004"), h("F7")
checksum = hashlib.sha1(rid + index + authority.modulus + b"\x03").digest()

# The CDOL1: amount, terminal country, TVR, currency, date, type, unpredictable number, CVM results.
cdol1 = h("9F0206 9F1A02 9505 5F2A02 9A03 9C01 9F3704 9F3403")
record = b"".join([
    tlv("5A", h("5413330089010434")), tlv("5F24", h("311231")), tlv("5F25", h("240101")), tlv("5F28", h("0276")),
    tlv("5F34", h("01")), tlv("57", h("5413330089010434D31122010123456789")), tlv("8C", cdol1),
    tlv("8E", h("00000000 00000000 4203 1E03 1F03")), tlv("9F07", h("FFC0")), tlv("9F08", h("0002")),
    tlv("9F0D", h("B450848000")), tlv("9F0E", h("0000000000")), tlv("9F0F", h("B470848000")), tlv("9F42", h("0978")),
    tlv("9F4A", h("82")),
])
issuer_certificate, issuer_remainder = authority.certify(2, h("54133300")[:3] + h("FF"), issuer)


def icc_certificate(aip):
    return issuer.certify(4, h("5413330089010434FFFF"), card, record + h(aip))


pdol_data = h("22")  # 9F35
number = "11223344"


def cdol1_data(tvr, number=number, cvm="1F0302"):
    return h("000000001234 0276" + tvr + "0978 261121 00" + number + cvm)


def signed(information, tvr, extra=b"", others=None, number=number, cvm="1F0302", pdol=pdol_data):
    """The answer to GENERATE AC: 9F27, 9F36, 9F10, with 9F4B before the last."""
    first = tlv("9F27", h(information)) + tlv("9F36", h("0042"))
    last = others if others is not None else tlv("9F10", h("0110A04003220000000000000000000000FF"))
    code = hashlib.sha1(pdol + cdol1_data(tvr, number, cvm) + first + last).digest()
    dynamic = h("08 0102030405060708" + information + "4A8CF7AC9A9378A0") + code + extra
    message = h("0501") + bytes([len(dynamic)]) + dynamic
    signature = card.sign(message.ljust(card.length - 22, b"\xBB"), h(number))
    return tlv("77", first + tlv("9F4B", signature) + last)


# Terminal entropy, device entropy, 1.0 ms at least, 8.0 ms at most, 2.4 ms on its way.
relay = h("11223344 AABBCCDD 000A 0050 0018")
relay_again = h("55667788 AABBCCDD 000A 0050 0018")
relay_third = h("99AABBCC AABBCCDD 000A 0050 0018")
summary1, summary3 = h("A1A2A3A4A5A6A7A8"), h("C1C2C3C4C5C6C7C8")
long1, long3 = h("A1A2A3A4A5A6A7A8A9AAABACADAEAFB0"), h("C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0")

# DS Input (Term), the operator, and the account with its sequence number.
ds_input, operator, ds_id = h("0102030405060708"), h("1011121314151617"), h("541333008901043401")


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def pairs(digits):
    return bytes(2 * int(digit_pair) for digit_pair in [digits[i:i + 1].hex() for i in range(len(digits))])


def digest1():
    left, right = pairs(ds_id[:6]) + operator[4:6], pairs(ds_id[-6:]) + operator[6:8]
    return xor(cipher("des-ede3", left + right + left, xor(operator, ds_input)), ds_input)


def digest2():
    message = ds_input + operator
    key = ds_id.rjust(11, b"\x00") + operator[4:8] + h("3F")
    return xor(cipher("aes-128-ecb", key, message), message)[:8]


plain, relayed, device = icc_certificate("1980"), icc_certificate("1981"), icc_certificate("1B80")
vectors = [
    ("caModulus", "The certification authority's key, index F7 of Mastercard's RID, exponent 3.", authority.modulus),
    ("caChecksum", "SHA-1 over RID, index, modulus and exponent.", checksum),
    ("record", "The record that is signed.", record),
    ("issuerCertificate", "Tag 90.", issuer_certificate),
    ("issuerRemainder", "Tag 92.", issuer_remainder),
    ("iccRemainder", "Tag 9F48.", plain[1]),
    ("iccCertificate", "Tag 9F46, for AIP 1980: CVM list, CDA, EMV mode.", plain[0]),
    ("iccCertificateRelay", "Tag 9F46, for AIP 1981: relay resistance, too.", relayed[0]),
    ("iccCertificateDevice", "Tag 9F46, for AIP 1B80: on-device verification, too.", device[0]),
    ("tc", "The answer to GENERATE AC 50: TC.", signed("40", "0000000001")),
    ("arqc", "To 90, above the floor limit: ARQC.", signed("80", "0000008001")),
    ("arqcForTC", "To 50: ARQC.", signed("80", "0000000001")),
    ("aac", "To 10: AAC, which is signed as well.", signed("00", "0000000001")),
    ("longLength", "To 50: TC, with a length field of two bytes where one would do.",
     signed("40", "0000000001", others=h("9F108112 0110A04003220000000000000000000000FF"))),
    ("onDevice", "To 50, TC of a device that has verified nobody.", signed("40", "0000000001", cvm="3F0002")),
    ("relay", "To 50, after relay resistance.", signed("40", "0000000002", relay)),
    ("relayAgain", "To 50, after relay resistance with another unpredictable number.",
     signed("40", "0000000002", relay_again, number="55667788")),
    ("relayLate", "To 90: beyond the limits each time.",
     signed("80", "000000000E", relay_third, number="99AABBCC")),
    ("relayOfAnother", "To 50, with relay resistance data that were not exchanged.",
     signed("40", "0000000002", relay[:-1] + b"\x19")),
    ("storageRead", "To 50: data storage version 1, read.", signed("40", "0000000001", summary1)),
    ("storageWritten", "To 50: data storage version 1, read and written.",
     signed("40", "0000000001", summary1 + summary3)),
    ("storageNotWritten", "To 50: data storage version 1, read and not written.",
     signed("40", "0000000001", summary1 + summary1)),
    ("storageChanged", "To 50: data storage version 1, which is not what was read.",
     signed("40", "0000000001", summary3 + summary3)),
    ("storageRelay", "To 50: data storage version 2, read and written, after relay resistance.",
     signed("40", "0000000002", long1 + long3 + relay)),
    ("digest1", "OWHF2 of DS Input (Term).", digest1()),
    ("digest2", "OWHF2AES of DS Input (Term).", digest2()),
]

print("// Made by Vectors/kernel2.py; not to be changed by hand.")
print()
print("/// A test card that signs, for the transaction of ``Kernel2Bench``.  Keys, account number and signatures are test values.")
print("enum Kernel2Vectors {")
for position, (name, comment, value) in enumerate(vectors):
    if position:
        print()
    print(f"    /// {comment}")
    digits = value.hex().upper()
    if len(digits) <= 80:
        print(f'    static let {name} = "{digits}"')
    else:
        print(f'    static let {name} = """')
        for start in range(0, len(digits), 104):
            print(f"        {digits[start:start + 104]}")
        print('        """')
print("}")

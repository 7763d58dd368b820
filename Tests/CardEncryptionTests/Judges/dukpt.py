#!/usr/bin/env python3
"""Opens envelopes of DUKPT from the base derivation key: an oracle that shares no code with the library.

    dukpt.py BDK ENVELOPE[,BOUND]…

The key in hexadecimal, envelopes in Base64, what they are bound to in hexadecimal; a test value each.  Prints the card data in hexadecimal, a line for each.
Written from ANSI X9.24-3:2017, 6.3, and X9.24-1:2009, Annex A, over the ciphers of PyCA cryptography.
"""
import base64
import sys

from cryptography.hazmat.primitives import cmac
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:
    TripleDES = algorithms.TripleDES


def crypt(algorithm, mode, data, encrypting=True):
    cipher = Cipher(algorithm, mode)
    context = cipher.encryptor() if encrypting else cipher.decryptor()
    return context.update(data) + context.finalize()


def unpad(data):
    data = data.rstrip(b"\x00")
    assert data[-1] == 0x80
    return data[:-1]


def aes_derive(key, usage, length, context):
    algorithm = {16: 2, 24: 3, 32: 4}[length]
    blocks = b""
    for count in (1, 2):
        data = bytes([1, count]) + usage.to_bytes(2, "big") + algorithm.to_bytes(2, "big")
        data += (length * 8).to_bytes(2, "big") + context
        blocks += crypt(algorithms.AES(key), modes.ECB(), data)
    return blocks[:length]


def aes(bdk, envelope, bound):
    length, usage, ksn = envelope[1], int.from_bytes(envelope[2:4], "big"), envelope[4:16]
    iv, ciphertext, mac = envelope[16:32], envelope[32:-16], envelope[-16:]
    counter = int.from_bytes(ksn[8:], "big")
    key, reached = aes_derive(bdk, 0x8001, len(bdk), ksn[:8]), 0
    for bit in range(31, -1, -1):
        if counter >> bit & 1:
            reached |= 1 << bit
            key = aes_derive(key, 0x8000, len(bdk), ksn[4:8] + reached.to_bytes(4, "big"))
    check = cmac.CMAC(algorithms.AES(aes_derive(key, 0x2000, length, ksn[4:])))
    check.update(envelope[:-16] + bound + len(bound).to_bytes(8, "big"))
    check.verify(mac)
    data_key = aes_derive(key, usage, length, ksn[4:])
    return unpad(crypt(algorithms.AES(data_key), modes.CBC(iv), ciphertext, False))


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def des(key, block):
    return crypt(TripleDES(key), modes.ECB(), block)


C0 = bytes.fromhex("C0C0C0C000000000" * 2)
# X9.24-1:2009, table A-1: data encryption, request or both ways; response.
VARIANTS = {1: bytes.fromhex("0000000000FF0000" * 2), 2: bytes.fromhex("000000FF00000000" * 2)}


def tdes(bdk, envelope, bound):
    ksn, iv, ciphertext = envelope[2:12], envelope[12:20], envelope[20:]
    number = int.from_bytes(ksn, "big")
    counter = number & 0x1FFFFF
    reached = number ^ counter
    left = reached.to_bytes(10, "big")[:8]
    key = des(bdk, left) + des(xor(bdk, C0), left)
    for bit in range(20, -1, -1):
        if counter >> bit & 1:
            reached |= 1 << bit
            register = (reached & (1 << 64) - 1).to_bytes(8, "big")
            halves = []
            for k in (xor(key, C0), key):
                halves.append(xor(des(k[:8] * 2, xor(register, k[8:])), k[8:]))
            key = halves[0] + halves[1]
    variant = xor(key, VARIANTS[envelope[1]])
    data_key = des(variant, variant[:8]) + des(variant, variant[8:])
    return unpad(crypt(TripleDES(data_key), modes.CBC(iv), ciphertext, False))


bdk = bytes.fromhex(sys.argv[1])
for text in sys.argv[2:]:
    text, _, bound = text.partition(",")
    envelope = base64.b64decode(text, validate=True)
    print({1: aes, 2: tdes}[envelope[0]](bdk, envelope, bytes.fromhex(bound)).hex().upper())

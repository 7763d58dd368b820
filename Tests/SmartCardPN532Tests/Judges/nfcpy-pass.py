"""Has nfcpy, unchanged but for its patience, wake a phone by polling frames and read a pass from it; Python's cryptography opens the pass.

    nfcpy-pass.py tty /dev/pts/3     a PN532 board (driver pn532)
    nfcpy-pass.py usb                an ACR122U (driver acr122)
"""
import hashlib
import struct
import sys
import time
import zlib

import nfc.clf.pn53x
import opened
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

# Published test keys: proxmark3 has the one for Apple's sample pass, Google's sample application the other.
APPLE_PASS = "pass.com.passkit.pksamples.nfcdemo"
APPLE_KEY = 0x3D1547F23CD78AD052A58860F1219E8FB791EC4DFE33769F5B9BFA627A656CA1
GOOGLE_COLLECTOR = 20180608
GOOGLE_KEY = 0x826D17E50767B165B0E4D9E332F8D1D1E20224284FB4DAF1E50A03246E70797D

CURVE = ec.SECP256R1()


def private(number):
    return ec.derive_private_key(number, CURVE)


def compressed(key):
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)


def point(data):
    return ec.EllipticCurvePublicKey.from_encoded_point(CURVE, bytes(data))


# --- The reader

clf = opened.reader(*sys.argv[1:])
chipset = clf.device.chipset
print("chipset", clf.device.chipset_name)


def poll(frame):
    """Requests for cards of type A, with a frame between two of them; the number of requests until one was answered."""
    chipset.rf_configuration(0x05, b"\xff\x01\x00")
    chipset.rf_configuration(0x02, b"\x00\x0b\x04")
    # The chip speaks ISO-DEP itself, which nfcpy has it leave to nfcpy.
    chipset.command(0x12, b"\x14", 0.1)
    # What the reader polled before is forgotten after 300 ms without a field.
    chipset.rf_configuration(0x01, b"\x00")
    time.sleep(0.4)
    chipset.rf_configuration(0x01, b"\x01")
    for count in range(1, 9):
        target = chipset.in_list_passive_target(1, 0, b"")
        if target:
            return count
        chipset.write_register("CIU_BitFraming", 0x00)
        try:
            print("unexpected", chipset.in_communicate_thru(frame, 0.1))
        except nfc.clf.pn53x.Chipset.Error as error:
            assert error.errno == 0x01, error
    return None


def transmit(command):
    data, more = chipset.in_data_exchange(bytearray(command), 1.0)
    while more:
        part, more = chipset.in_data_exchange(bytearray(), 1.0)
        data += part
    return bytes(data[:-2]), bytes(data[-2:]).hex()


def select(name):
    return transmit(b"\x00\xa4\x04\x00" + bytes([len(name)]) + name + b"\x00")


def objects(data):
    """BER-TLV objects, the last of equal tags alone."""
    found = {}
    while data:
        size = 1 if data[0] & 0x1F != 0x1F else 2
        tag, data = data[:size].hex(), data[size:]
        if data[0] & 0x80:
            count = data[0] & 0x7F
            length, data = int.from_bytes(data[1:1 + count], "big"), data[1 + count:]
        else:
            length, data = data[0], data[1:]
        assert length <= len(data)
        found[tag], data = data[:length], data[length:]
    return found


# --- Apple


def read_apple():
    digest = hashlib.sha256(APPLE_PASS.encode()).digest()
    request = b"\x9f\x22\x02\x01\x00" + b"\x9f\x25\x20" + digest + b"\x9f\x26\x04\x00\x80\x00\x02"
    data, status = transmit(b"\x80\xca\x01\x01" + bytes([len(request)]) + request + b"\x00")
    print("get data", status)
    cryptogram = objects(objects(data)["70"])["9f27"]
    key = private(APPLE_KEY)
    x = compressed(key.public_key())[1:]
    assert cryptogram[:4] == hashlib.sha256(x).digest()[:4]
    shared = key.exchange(ec.ECDH(), point(b"\x02" + cryptogram[4:36]))
    information = b"\x0d" + b"id-aes256-GCM" + b"ApplePay encrypted VAS data" + digest
    secret = hashlib.sha256(shared + b"\x00\x00\x00\x01" + information).digest()
    clear = AESGCM(secret).decrypt(bytes(16), cryptogram[36:], None)
    print("pass", clear[4:].decode())


# --- Google


def record(name, payload, first, last):
    flags = 0x04 | (0x80 if first else 0) | (0x40 if last else 0) | 0x10
    return bytes([flags, len(name), len(payload)]) + name.encode() + payload


def message(*records):
    return b"".join(
        record(name, payload, index == 0, index == len(records) - 1) for index, (name, payload) in enumerate(records))


def records(data):
    found = {}
    while data:
        flags, type_length = data[0], data[1]
        size = 1 if flags & 0x10 else 4
        length, data = int.from_bytes(data[2:2 + size], "big"), data[2 + size:]
        id_length = data[0] if flags & 0x08 else 0
        data = data[1:] if flags & 0x08 else data
        kind, name = data[:type_length], data[type_length:type_length + id_length]
        data = data[type_length + id_length:]
        assert length <= len(data)
        found[(name if flags & 0x07 == 1 else kind).decode()], data = data[:length], data[length:]
    return found


def read_google(answer):
    fields = objects(objects(answer)["6f"])
    data, status = select(bytes.fromhex("A000000476D0000111"))
    print("smart tap", status, data[:4].hex())
    nonce = records(data[4:])["mdn"][1:]
    assert nonce == fields["c2"] and len(nonce) == 32
    collector = struct.pack(">I", GOOGLE_COLLECTOR)
    ephemeral = ec.generate_private_key(CURVE)
    own_nonce = hashlib.sha256(b"a number used once").digest()
    signed = own_nonce + nonce + collector + compressed(ephemeral.public_key())
    signature = private(GOOGLE_KEY).sign(signed, ec.ECDSA(hashes.SHA256()))
    session = bytes(range(1, 9))
    parameters = (
        own_nonce + b"\x01" + compressed(ephemeral.public_key()) + struct.pack(">I", 1)
        + message(("sig", b"\x04" + signature), ("cld", b"\x04" + collector)))
    request = message(
        ("ngr", b"\x00\x01" + message(("ses", session + b"\x00\x01"), ("cpr", parameters))))
    data, status = transmit(b"\x90\x53\x00\x00" + bytes([len(request)]) + request + b"\x00")
    negotiated = records(records(data)["nrs"])
    print("negotiate", status, negotiated["ses"][8:].hex())
    capabilities = bytes.fromhex("4401010804")
    request = message((
        "srq",
        b"\x00\x01" + message(
            ("ses", session + b"\x01\x01"), ("mer", message(("cld", b"\x04" + collector))),
            ("slr", message(("str", b"\x03"))), ("pcr", capabilities))))
    data, status = transmit(b"\x90\x50\x00\x00" + bytes([len(request)]) + request + b"\x00")
    while status == "9100":
        part, status = transmit(b"\x90\xc0\x00\x00\x00")
        data += part
    response = records(records(data)["srs"])
    print("get data", status, response["ses"][8:].hex())
    flag, iv, sealed, checksum = (
        response["reb"][0], response["reb"][1:13], response["reb"][13:-32], response["reb"][-32:])
    device_key = negotiated["dpk"]
    shared = ephemeral.exchange(ec.ECDH(), point(device_key))
    keys = HKDF(hashes.SHA256(), 48, device_key, signed + signature).derive(shared)
    check = hmac.HMAC(keys[16:], hashes.SHA256())
    check.update(iv + sealed)
    check.verify(checksum)
    clear = Cipher(algorithms.AES(keys[:16]), modes.CTR(iv + bytes(4))).decryptor().update(sealed)
    assert flag == 0x03
    loyalty = records(records(records(zlib.decompress(clear))["asv"])["ly"])
    print("pass", loyalty["n"][1:].decode())


# --- The tap

# 6A 01 00 00 00, a pass or a payment, and its CRC_A as sniffed.
requests = poll(bytes.fromhex("6A01000000F6F1"))
print("requests", requests)
if requests:
    answer, status = select(b"OSE.VAS.01")
    wallet = objects(objects(answer)["6f"])["50"].decode()
    print("wallet", wallet, status)
    read_apple() if wallet == "ApplePay" else read_google(answer)
    print("directory", select(b"2PAY.SYS.DDF01")[1])
    chipset.command(0x44, b"\x00", 0.1)
    chipset.rf_configuration(0x01, b"\x00")
clf.close()

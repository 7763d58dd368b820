#!/usr/bin/env python3
"""The issuer's side of mag-stripe mode: the digits that it finds in the tracks, and where (EMV Contactless Book C-2, S13.18 to
S13.22).

    python3 Tests/EMVContactlessTests/Vectors/kernel2-tracks.py > Tests/EMVContactlessTests/Kernel2Tracks.swift

makes tracks as they have to be, for every number of digits and for places chosen by a seed, with nothing but Python.

    python3 Tests/EMVContactlessTests/Vectors/kernel2-tracks.py verify

reads what a terminal has made with the card mastercard-stripe, a line each, and says `right` or what is wrong; the program
openssl has DES.  Keys and account number are test values.
"""
import random
import subprocess
import sys

h = bytes.fromhex


def positions(bits):
    """Counted from the end of the track, the one nearest to it first."""
    return [i for i in range(48) if int(bits, 16) >> i & 1]


# MARK: Tracks as they have to be

rng = random.Random("Kernel 2, tracks")
length1, length2 = 48, 13


def place(length, checksum, q, counter, t, n, pool):
    """Bitmaps for q digits of CVC3, n digits of the unpredictable number (letters: a is the first of the eight digits of 9F6A)
    and t of the counter; and the discretionary data, nines but for them."""
    chosen = rng.sample(pool, q + n + t)
    checksums, others = sorted(chosen[:q]), sorted(chosen[q:])
    data = ["9"] * length
    for digit, position in zip(reversed(f"{checksum:05}"), checksums):
        data[-1 - position] = digit
    for letter, position in zip("hgfedcba", others[:n]):
        data[-1 - position] = letter
    for digit, position in zip(reversed(f"{counter:05}"), others[n:]):
        data[-1 - position] = digit
    data[-1] = str(n)
    return sum(1 << i for i in checksums), sum(1 << i for i in others), "".join(data)


def rows():
    for q in range(6):
        for t in range(6):
            for n in range(9):
                if q + t + n > length2:
                    continue
                # The last place is that of the number of digits: what is put there is covered by it.
                first = 0 if q + t + n == length2 or rng.random() < 0.2 else 1
                counter, checksum1, checksum2 = (rng.randrange(0x10000) for _ in range(3))
                q1, t1 = rng.randrange(6), rng.randrange(6)
                # A third of them at either end of the track.
                end1 = rng.choice([range(first, 20), range(length1 - 20, length1), range(first, length1)])
                p1, u1, data1 = place(length1, checksum1, q1, counter, t1, n, list(end1))
                p2, u2, data2 = place(length2, checksum2, q, counter, t, n, list(range(first, length2)))
                yield (f"{p1:012X} {u1:012X} {t1:02X} {checksum1:04X} {data1} "
                       f"{p2:04X} {u2:04X} {t:02X} {checksum2:04X} {data2} {counter:04X}")


def generate():
    print("// Made by Vectors/kernel2-tracks.py; not to be changed by hand.")
    print()
    print("/// Where the digits of mag-stripe mode go: PCVC3, PUNATC, NATC, CVC3 and discretionary data of track 1, the same of")
    print("/// track 2, and the counter.  The letters a to h are the digits of 9F6A.")
    print("enum Kernel2Tracks {")
    print('    static let rows = """')
    for row in rows():
        print("        " + row)
    print('        """')
    print("}")


# MARK: What a terminal has made

def des(key, block, *more):
    key = key if len(key) == 16 else key * 2
    return subprocess.run(
        ["openssl", "enc", "-des-ede", "-nopad", "-K", key.hex(), *more], input=block, capture_output=True,
        check=True).stdout


def parity(key):
    return bytes(b & 0xFE | (bin(b >> 1).count("1") + 1) % 2 for b in key)


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def verify():
    master, account = h("01234567899876543210012345678998"), h("1333008901043400")
    card = parity(des(master, account) + des(master, xor(account, b"\xFF" * 8)))

    def cvc3(track, number, counter):
        text = track + b"\x80"
        text += bytes(-len(text) % 8)
        state = bytes(8)
        for i in range(0, len(text), 8):
            state = des(card[:8], xor(state, text[i:i + 8]))
        mac = des(card[:8], des(card[8:], state, "-d"))
        return int.from_bytes(des(card, mac[-2:] + number + counter.to_bytes(2, "big"))[-2:], "big")

    blank = {
        1: b"B5413330089010434^TAPPER/TESSA^31121010000000000000",
        2: h("5413330089010434D31121010000000000000F"),
    }
    counter = 0x3039
    for line in sys.stdin:
        t1, t2, number, p1, n1, a1, p2, n2, a2, count = line.strip().split(",")
        count = int(count)
        tracks = {1: (h(t1).decode(), p1, n1, int(a1)), 2: (t2.rstrip("F"), p2, n2, int(a2))}
        faults = []
        if number[:8 - count] != "0" * (8 - count) or not number.isdigit():
            faults.append("number " + number)
        for track, (text, checksums, numbers, counters) in tracks.items():
            def digits(places):
                return "".join(text[-1 - i] for i in reversed(places))
            both, own = positions(numbers), positions(checksums)
            if digits(both[:count]) != number[8 - count:]:
                faults.append(f"{track} number")
            if digits(both[count:]) != str(counter)[5 - counters:]:
                faults.append(f"{track} counter")
            if digits(own) != f"{cvc3(blank[track], h(number), counter):05}"[5 - len(own):]:
                faults.append(f"{track} CVC3")
            if text[-1] != str(count):
                faults.append(f"{track} count")
            if any(text[-1 - i] != "0" for i in range(1, 13) if i not in both + own):
                faults.append(f"{track} rest")
        print("right" if not faults else f"{line.strip()} {faults}")


verify() if sys.argv[1:] == ["verify"] else generate()

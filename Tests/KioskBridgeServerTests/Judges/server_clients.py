"""Clients of a BridgeServer, good and hostile, over raw sockets: what a browser would never send.

server_clients.py PORT CASE [ARGUMENT...] runs one case, and ends with 0 if the server did what it must; a fault is named on
standard error.  Facts: RFC 6455 (WebSocket), RFC 9110 and 9112 (HTTP).
"""
import base64, hashlib, hmac, json, os, re, socket, struct, sys, time

PORT = int(sys.argv[1])
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"


def expect(condition, what):
    if not condition:
        print(what, file=sys.stderr)
        sys.exit(1)


def dial(address="127.0.0.1", buffer=None):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    if buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    s.settimeout(10)
    s.connect((address, PORT))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def rest(s):
    """What comes until the server closes the connection."""
    data = b""
    try:
        while part := s.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


def answer(s):
    """One answer over HTTP: status, header fields in lower case, body."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = s.recv(1)
        if not part:
            return None, {}, data
        data += part
    lines = data.decode().split("\r\n")
    fields = {}
    for line in lines[1:-2]:
        name, value = line.split(":", 1)
        fields[name.lower()] = value.strip()
    body = b""
    while len(body) < int(fields.get("content-length", 0)):
        part = s.recv(65536)
        expect(part, "the answer ends early")
        body += part
    return int(lines[0].split()[1]), fields, body


def request(text, s=None):
    s = s or dial()
    s.sendall(text.encode() if isinstance(text, str) else text)
    return answer(s)


def get(target, *fields, host=HOST):
    return "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *fields]) + "\r\n\r\n"


def token(host=HOST):
    status, _, body = request(get("/token", "Sec-Fetch-Site: same-origin", "X-Kiosk-Bridge: 1", host=host))
    expect(status == 200, f"/token: {status}")
    return json.loads(body)["token"]


KEY = base64.b64encode(os.urandom(16)).decode()


def handshake(secret=None, host=HOST, origin=None, connection="keep-alive, Upgrade", key=KEY, version="13",
              protocols=None, more=(), head="GET /bridge HTTP/1.1"):
    protocols = protocols or f"kiosk.bridge.v1, auth.{secret or token(host)}"
    lines = [head, f"Host: {host}", "Upgrade: websocket"]
    for name, value in [("Connection", connection), ("Origin", origin or f"http://{host}"), ("Sec-WebSocket-Key", key),
                        ("Sec-WebSocket-Version", version), ("Sec-WebSocket-Protocol", protocols)]:
        if value != "-":
            lines.append(f"{name}: {value}")
    return ("\r\n".join([*lines, *more]) + "\r\n\r\n").encode()


class Page:
    """A connection after its handshake."""

    def __init__(self, s=None, trailing=b"", buffer=None, **options):
        self.s = s or dial(buffer=buffer)
        self.token = options.pop("secret", None) or token()
        self.s.sendall(handshake(self.token, **options) + trailing)
        status, fields, _ = answer(self.s)
        expect(status == 101, f"the handshake is answered with {status}")
        digest = hashlib.sha1((KEY + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        expect(fields["sec-websocket-accept"] == base64.b64encode(digest).decode(), "Sec-WebSocket-Accept")
        expect(fields["sec-websocket-protocol"] == "kiosk.bridge.v1", "only the name of the protocol is echoed")
        expect("sec-websocket-extensions" not in fields, "no extension")
        self.data = b""

    def take(self, count):
        while len(self.data) < count:
            part = self.s.recv(65536)
            if not part:
                raise EOFError
            self.data += part
        part, self.data = self.data[:count], self.data[count:]
        return part

    def frame(self):
        """The next frame: opcode and payload.  Every frame of this server is whole, and not masked."""
        first, length = self.take(2)
        expect(first & 0x70 == 0 and first & 0x80 and not length & 0x80, f"frame {first:02x} {length:02x}")
        if length == 126:
            length, = struct.unpack(">H", self.take(2))
        elif length == 127:
            length, = struct.unpack(">Q", self.take(8))
        return first & 0x0F, self.take(length)

    def message(self):
        while True:
            opcode, data = self.frame()
            if opcode == 1:
                return json.loads(data)
            expect(opcode in (9, 10), f"opcode {opcode}: {data}")

    def code(self):
        """The code with which the server closes; None if it just closes."""
        try:
            while True:
                opcode, data = self.frame()
                if opcode == 8:
                    return struct.unpack(">H", data[:2])[0] if data else 0
        except (EOFError, ConnectionError):
            return None

    def send(self, opcode, data, **options):
        self.s.sendall(frame(opcode, data, **options))

    def ask(self, action, identifier, data=None):
        payload = {"action": action} if data is None else {"action": action, "data": data}
        self.send(1, json.dumps(
            {"v": 1, "type": "request", "correlationId": identifier, "payload": payload}).encode())

    def response(self, identifier):
        while True:
            message = self.message()
            if message["type"] == "response" and message["correlationId"] == identifier:
                return message

    def works(self):
        """The host is reached, and proves that it knows the token."""
        ready = self.message()
        expect(ready["payload"]["action"] == "host.ready" and ready["payload"]["data"]["sequence"] == 1, f"{ready}")
        nonce = os.urandom(16).hex()
        self.ask("bridge.hello", "hello", {"nonce": nonce})
        proof = hmac.new(self.token.encode(), nonce.encode(), "sha256").hexdigest()
        expect(self.response("hello")["payload"]["data"]["proof"] == proof, "proof")
        return self

    def leave(self, code=1000):
        self.send(8, struct.pack(">H", code))
        expect(self.code() == code, "the close is echoed")
        expect(self.s.recv(1) == b"", "the server closes the connection")


def frame(opcode, data=b"", fin=True, masked=True, rsv=0, length=None):
    size = len(data) if length is None else length
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if masked else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if not masked:
        return head + data
    mask = os.urandom(4)
    return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data))


def good():
    """A good page is served, and the server is free again afterwards."""
    end = time.monotonic() + 10
    while True:
        s = dial()
        secret = token()
        s.sendall(handshake(secret))
        status, _, _ = answer(s)
        if status == 101:
            break
        expect(status == 409 and time.monotonic() < end, f"a good page gets {status}")
        time.sleep(0.02)
    page = Page.__new__(Page)
    page.s, page.data, page.token = s, b"", secret
    page.works().leave()


# --- Frames

def padded(size):
    """A request of `size` bytes."""
    text = json.dumps({"v": 1, "type": "request", "correlationId": "big", "payload": {
        "action": "capability.query", "data": {"x": ""}}})
    return text.replace('"x": ""', f'"x": "{"a" * (size - len(text))}"').encode()


def pieces(data, count, opcode=1):
    step = -(-len(data) // count)
    parts = [data[i:i + step] for i in range(0, len(data), step)]
    parts += [b""] * (count - len(parts))
    return b"".join(frame(0 if i else opcode, part, fin=i == count - 1) for i, part in enumerate(parts))


FRAMES = {
    "longer than 64 KiB": (frame(1, padded(65537)), 1009),
    "announced longer": (frame(1, b"", length=65537), 1009),
    "announced much longer": (frame(1, b"", length=2**62), 1009),
    "announced longest": (frame(1, b"", length=2**64 - 1), 1009),
    "fragmented beyond": (pieces(padded(65537), 3), 1009),
    "fragmented far beyond": (b"".join(frame(0 if i else 1, b"a" * 60000, fin=False) for i in range(20)), 1009),
    "65 fragments": (pieces(padded(1000), 65), 1009),
    "empty fragments": (frame(1, fin=False) + frame(0, fin=False) * 100, 1009),
    "binary": (frame(2, b"{}"), 1003),
    "binary, fragmented": (pieces(b"{}", 2, opcode=2), 1003),
    "binary, empty": (frame(2), 1003),
    "bad UTF-8": (frame(1, b'{"v":1,"type":"\xff"}'), 1007),
    "UTF-8 of a surrogate": (frame(1, b'"\xed\xa0\x80"'), 1007),
    "UTF-8, overlong": (frame(1, b'"\xc0\xaf"'), 1007),
    "UTF-8, cut off": (frame(1, b'"\xe2\x82'), 1007),
    "bad UTF-8, split": (frame(1, b'"\xe2\x82', fin=False) + frame(0, b'\x22"'), 1007),
    "not masked": (frame(1, b"{}", masked=False), 1002),
    "not masked, ping": (frame(9, masked=False), 1002),
    "not masked, close": (frame(8, masked=False), 1002),
    "RSV1": (frame(1, b"{}", rsv=4), 1002),
    "RSV2": (frame(1, b"{}", rsv=2), 1002),
    "RSV3": (frame(1, b"{}", rsv=1), 1002),
    "RSV1, continuation": (frame(1, b"{", fin=False) + frame(0, b"}", rsv=4), 1002),
    "RSV1, ping": (frame(9, rsv=4), 1002),
    **{f"reserved opcode {o}": (frame(o, b"{}"), 1002) for o in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]},
    "reserved opcode, fragment": (frame(3, b"{", fin=False), 1002),
    "fragmented ping": (frame(9, fin=False), 1002),
    "fragmented close": (frame(8, fin=False), 1002),
    "long ping": (frame(9, b"a" * 126), 1002),
    "long pong": (frame(10, b"a" * 65535), 1002),
    "long close": (frame(8, b"\x03\xe8" + b"a" * 124), 1002),
    "continuation without start": (frame(0, b"{}"), 1002),
    "start within fragments": (frame(1, b"{", fin=False) + frame(1, b"{}"), 1002),
    "fragment start within fragments": (frame(1, b"{", fin=False) + frame(1, b"{", fin=False), 1002),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", 1002),
    "no JSON": (frame(1, b"{"), 1007),
    "empty": (frame(1), 1007),
    "no JSON, NUL": (frame(1, b"\0"), 1007),
    "NaN": (frame(1, b'{"v":NaN}'), 1007),
    "deep": (frame(1, b"[" * 33 + b"]" * 33), 1007),
    "very deep": (frame(1, b"[" * 32768 + b"]" * 32768), 1007),
    "no message": (frame(1, b"{}"), 1008),
    "an array": (frame(1, b"[]"), 1008),
    "close, one byte": (frame(8, b"\x03"), 1002),
    "close, code 0": (frame(8, b"\0\0"), 1002),
    "close, code 1005": (frame(8, struct.pack(">H", 1005)), 1002),
    "close, code 1006": (frame(8, struct.pack(">H", 1006)), 1002),
    "close, code 2999": (frame(8, struct.pack(">H", 2999)), 1002),
    "close, code 65535": (frame(8, struct.pack(">H", 65535)), 1002),
    "close, bad UTF-8": (frame(8, b"\x03\xe8\xff"), 1007),
    "close": (frame(8, b"\x03\xe9bye"), 1001),
    "close, 4999": (frame(8, struct.pack(">H", 4999)), 4999),
    "close, empty": (frame(8), 0),
}


def frames(*names):
    """Frames that are no messages: each ends its connection with the code for it."""
    for name in names or FRAMES:
        data, code = FRAMES[name]
        for step in [None, 1] if len(data) < 200 else [None]:
            page = Page(secret=None) if step is None else Page()
            try:
                if step:
                    for i in range(0, len(data), step):
                        page.s.sendall(data[i:i + step])
                else:
                    page.s.sendall(data)
            except ConnectionError:
                pass
            got = page.code()
            expect(got == code, f"{name}: closed with {got}, not with {code}")
            page.send(8, struct.pack(">H", code or 1000)) if code in (1007, 1008, 1003) else None
            page.s.close()
            free()


def free():
    """Waits until the server takes another page."""
    good()


def messages():
    """What is at the edge of the limits, and allowed."""
    page = Page().works()
    for count in [1, 2, 64]:
        page.s.sendall(pieces(padded(65536), count))
        expect(page.response("big")["status"] == "success", f"64 KiB in {count} fragments")
    # A character may be cut in two by fragments, and control frames may come in between (5.4).
    text = json.dumps({"v": 1, "type": "request", "correlationId": "euro", "payload": {
        "action": "capability.query", "data": {"x": "\u20ac\U0001F4B3"}}}, ensure_ascii=False).encode()
    page.s.sendall(b"".join(
        frame(0 if i else 1, text[i:i + 3], fin=i + 3 >= len(text)) + frame(9, b"%d" % i)
        for i in range(0, len(text), 3)))
    pongs = 0
    while True:
        opcode, data = page.frame()
        pongs += opcode == 10
        if opcode == 1 and json.loads(data)["correlationId"] == "euro":
            break
    expect(pongs == -(-len(text) // 3), f"{pongs} pongs")
    # Lengths that are not the shortest, and empty fragments.
    page.s.sendall(b"\x89\xfe\x00\x01" + b"\0\0\0\0" + b"p")
    expect(page.frame() == (10, b"p"), "pong")
    page.leave()


CASES = {f.__name__: f for f in [good, frames, messages]}

if __name__ == "__main__":
    CASES[sys.argv[2]](*sys.argv[3:])
    print("ok")

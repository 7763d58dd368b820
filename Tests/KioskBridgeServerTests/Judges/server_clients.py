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
    s.settimeout(60)
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
        part = s.recv(int(fields["content-length"]) - len(body))
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

    def __init__(self, trailing=b"", address="127.0.0.1", buffer=None, **options):
        secret = options.pop("secret", None)
        host = options.get("host", HOST)
        end = time.monotonic() + 60
        while True:
            self.s = dial(address, buffer)
            self.token = secret or token(host)
            self.s.sendall(handshake(self.token, **options) + trailing)
            status, fields, _ = answer(self.s)
            # The page before may not have left yet; the token has been used up all the same.
            if status not in (409, None) or secret or time.monotonic() > end:
                break
            time.sleep(0.02)
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
            if opcode == 9:
                self.send(10, data)

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

    def vanish(self):
        """It is gone at once, with all that it has not taken."""
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.s.close()

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
    Page().works().leave()


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
    "HTTP": (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20 + b"\r\n", 1002),
    "no JSON": (frame(1, b"{"), 1007),
    "empty": (frame(1), 1007),
    "no JSON, NUL": (frame(1, b"\0"), 1007),
    "NaN": (frame(1, b'{"v":NaN}'), 1007),
    "deep": (frame(1, b"[" * 34 + b"]" * 34), 1007),
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
            try:
                got = page.code()
            except TimeoutError:
                got = "nothing"
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


# --- Who is admitted

def status(**options):
    return request(handshake(**options))[0]


def admission():
    """Each refusal reaches the client with its status, and a good page comes in afterwards."""
    secret = token()
    for origin in ["null", "-", f"http://127.0.0.1:{PORT + 1}", "http://127.0.0.1", f"https://{HOST}", f"{ORIGIN}.",
                   f"{ORIGIN}/", f"http://x@{HOST}", f"{ORIGIN}.evil.example", "http://evil.example",
                   f"{ORIGIN}, http://evil.example", f"HTTP://{HOST}"]:
        expect(status(secret=secret, origin=origin) == 403, f"Origin {origin}")
    expect(status(secret=secret, more=["Origin: http://evil.example"]) == 403, "two origins")
    for host in ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1.:{PORT}", f"0.0.0.0:{PORT}"]:
        expect(status(secret=secret, host=host, origin=ORIGIN) == 421, f"Host {host}")
        expect(request(get("/", host=host))[0] == 421, f"Host {host} of a page")
    expect(status(secret=secret, more=[f"Host: {HOST}"]) in (400, 421), "two hosts")
    for protocols in ["-", f"auth.{secret}", f"kiosk.bridge.v2, auth.{secret}"]:
        expect(status(secret=secret, protocols=protocols) == 400, f"protocols {protocols}")
    for protocols in ["kiosk.bridge.v1", "kiosk.bridge.v1, auth.", f"kiosk.bridge.v1, auth.{'0' * 32}",
                      f"kiosk.bridge.v1, auth.{secret}, auth.{secret}", f"kiosk.bridge.v1, AUTH.{secret}"]:
        expect(status(secret=secret, protocols=protocols) == 401, f"protocols {protocols}")
    # No handshake (RFC 6455, 4.2.1).
    for options in [{"connection": "-"}, {"connection": "keep-alive"}, {"more": ["Content-Length: 0"]},
                    {"more": ["Content-Length: 5"]}, {"more": ["Transfer-Encoding: chunked"]},
                    {"head": "GET /bridge HTTP/1.0"}]:
        s = dial()
        s.sendall(handshake(secret, **options) + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        got, _, _ = answer(s)
        expect(got in (400, 421), f"{options}: {got}")
    for options in [{"key": "-"}, {"version": "-"}, {"version": "8"}]:
        expect(status(secret=secret, **options) == 426, f"{options}")
    expect(status(secret=secret, head="POST /bridge HTTP/1.1") == 405, "POST")
    expect(status(secret=secret, head="GET /nothing HTTP/1.1") == 404, "another path")
    # None of these used the token up.
    page = Page(secret=secret).works()
    # A second page is refused, and its token is gone; after the first has left it comes in with a new one.
    second = token()
    expect(status(secret=second) == 409, "a second page")
    expect(status(secret=second) == 401, "its token is used up")
    page.leave()
    good()
    expect(status(secret=secret) == 401, "a token that was used")
    # A token of the page at localhost is none for 127.0.0.1, and is then used up.
    other = token(f"localhost:{PORT}")
    expect(status(secret=other) == 401, "another origin")
    expect(status(secret=other, host=f"localhost:{PORT}") == 401, "it is used up")
    Page(host=f"localhost:{PORT}").works().leave()


def pages(page=None):
    """The token in the page admits it, if this server has a page."""
    if page is None:
        page_token()
    # The same for both addresses and all three names.
    for address, host in [("127.0.0.1", HOST), ("127.0.0.1", f"localhost:{PORT}"), ("::1", f"[::1]:{PORT}"),
                          ("::1", f"localhost:{PORT}")]:
        Page(address=address, host=host).works().leave()


def page_token():
    got, fields, body = request(get("/"))
    expect(got == 200 and fields["content-type"] == "text/html; charset=utf-8", f"{got} {fields}")
    secret = re.search(rb'<meta name="kiosk-token" content="([0-9a-f]{32})">', body).group(1).decode()
    Page(secret=secret).works().leave()
    free()


def foreign(origin, secret):
    """A page of another origin, with the token that the application handed to it."""
    expect(status(secret=token(), origin=origin) == 401, "a token of the server's own page")
    page = Page(secret=secret, origin=origin)
    page.works().leave()
    free()


# --- HTTP

SECURITY = ["content-security-policy", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy",
            "cross-origin-resource-policy", "permissions-policy", "x-frame-options"]


def http():
    for text, expected in [
        (get("/"), 200), (get("/?a=b"), 200), (get("/index.html"), 404), (get("/kiosk-bridge.js"), 200),
        (get("/kiosk-bridge.d.ts"), 200), (get("/../etc/passwd"), 404), (get("/%2e%2e/etc/passwd"), 404),
        (get("/bridge"), 426), (get("/token"), 403), (get("/token", "Sec-Fetch-Site: same-origin"), 403),
        (get("/token", "X-Kiosk-Bridge: 1"), 403), (get("/nothing"), 404),
        (get("/token", "Sec-Fetch-Site: cross-site", "X-Kiosk-Bridge: 1"), 403),
        (get("/", "Content-Length: 3") + "abc", 400), (get("/").replace("GET", "HEAD"), 405),
        (get("/").replace("GET", "OPTIONS"), 405), (get("/", "Content-Length: 2").replace("GET", "POST") + "{}", 405),
        (f"GET / HTTP/1.0\r\nHost: {HOST}\r\n\r\n", 200), ("GET / HTTP/1.0\r\n\r\n", 421),
        ("GET / HTTP/1.1\r\n\r\n", 421), (get(f"http://{HOST}/"), 404), (get("http://evil.example/"), 404),
    ]:
        s = dial()
        s.sendall(text.encode())
        if text.startswith("HEAD"):
            data = rest(s)
            expect(data.startswith(b"HTTP/1.1 405") and data.endswith(b"\r\n\r\n"), f"HEAD: {data}")
            continue
        got, fields, _ = answer(s)
        expect(got == expected, f"{text!r}: {got}")
        for name in SECURITY:
            expect(name in fields, f"{text!r}: no {name}")
        expect(fields["cache-control"] == "no-store", "stored")
        expect("access-control-allow-origin" not in fields, "CORS")
        expect((fields.get("allow") == "GET") == (got == 405), "Allow")
        stays = got == 200 and "1.0" not in text
        expect(fields["connection"] == ("keep-alive" if stays else "close"), f"{text!r}: {fields['connection']}")
        if not stays:
            expect(rest(s) == b"", "the connection is closed")
        s.close()
    # A host that is not this server's is not repeated.
    _, fields, body = request(get("/", host="evil.example"))
    expect("evil" not in f"{fields}{body}", "evil")
    # Several requests at once are answered one after the other.
    s = dial()
    s.sendall((get("/") + get("/kiosk-bridge.js") + get("/nothing") + get("/")).encode())
    expect([answer(s)[0] for _ in range(3)] == [200, 200, 404] and rest(s) == b"", "pipelined")
    # A connection that was used for a page is not upgraded.
    s = dial()
    expect(request(get("/"), s)[0] == 200 and request(handshake(), s)[0] == 426, "upgrade later")
    free()


def smuggling():
    """Requests whose end is unclear are not answered as if it were clear: nothing behind them is taken for a request."""
    inner = get("/kiosk-bridge.js")
    for name, text in {
        "two lengths": get("/", "Content-Length: 0", f"Content-Length: {len(inner)}") + inner,
        "two lengths in one": get("/", f"Content-Length: 0, {len(inner)}") + inner,
        "length and chunks": get("/", "Content-Length: 4", "Transfer-Encoding: chunked") + "0\r\n\r\n" + inner,
        "chunks of a GET": get("/", "Transfer-Encoding: chunked") + "3\r\nabc\r\n0\r\n\r\n" + inner,
        "unknown coding": get("/", "Transfer-Encoding: xchunked") + "0\r\n\r\n" + inner,
        "two codings": get("/", "Transfer-Encoding: chunked", "Transfer-Encoding: identity") + "0\r\n\r\n" + inner,
        "negative length": get("/", "Content-Length: -1") + inner,
        "length with a sign": get("/", "Content-Length: +0") + inner,
        "huge length": get("/", "Content-Length: 99999999999999999999") + inner,
        "length in hexadecimal": get("/", "Content-Length: 0x0") + inner,
        "space before the colon": get("/", "Content-Length : 0") + inner,
        "folded line": get("/", "X: a\r\n Content-Length: 5") + inner,
        "bare CR": get("/", "X: a\rContent-Length: 5") + inner,
        "NUL": get("/", "X: a\0b") + inner,
        "no version": f"GET /\r\nHost: {HOST}\r\n\r\n" + inner,
        "version 2": get("/").replace("1.1", "2.0") + inner,
        "version 9.9": get("/").replace("1.1", "9.9") + inner,
        "bad chunk": get("/", "Transfer-Encoding: chunked") + "zz\r\n" + inner,
        "HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + inner,
        "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0" * 100 + inner,
    }.items():
        s = dial()
        s.sendall(text.encode("latin-1"))
        s.shutdown(socket.SHUT_WR)
        data = rest(s)
        expect(b"text/javascript" not in data, f"{name}: {data[:300]}")
    # A header without end.
    for line in [b"X: " + b"a" * 1_000_000, b"X: a\r\n" * 200_000, b""]:
        s = dial()
        try:
            s.sendall(get("/").encode()[:-2] + line if line else b"GET /" + b"a" * 1_000_000)
        except OSError:
            pass
        data = rest(s)
        expect(not data or data.startswith(b"HTTP/1.1 4"), f"a long header: {data[:80]}")
    free()


def slow():
    """Requests that take too long lose their connection: the limit of this server is 1 s."""
    start = time.monotonic()
    trickling = []
    for text in ["", "G", get("/")[:-2], get("/", "Content-Length: 100000"), get("/").replace("GET", "POST")[:-2]
                 + "Transfer-Encoding: chunked\r\n\r\n", get("/")]:
        s = dial()
        s.sendall(text.encode())
        trickling.append(s)
    while trickling and time.monotonic() < start + 60:
        time.sleep(0.1)
        for s in list(trickling):
            try:
                s.sendall(b"a")
                s.setblocking(False)
                try:
                    while part := s.recv(65536):
                        pass
                    trickling.remove(s)
                except BlockingIOError:
                    pass
                s.setblocking(True)
            except OSError:
                trickling.remove(s)
    expect(not trickling, f"{len(trickling)} are open after {time.monotonic() - start:.1f} s")
    good()


def many():
    """Of 200 connections 64 stay."""
    connections = [dial() for _ in range(200)]
    # All 200 have been taken or refused when the last one has: they come in their order.
    end = time.monotonic() + 60
    closed = set()
    while 199 not in closed and len(closed) < 136:
        expect(time.monotonic() < end, f"{len(closed)} are closed")
        time.sleep(0.02)
        for number, s in enumerate(connections):
            s.setblocking(False)
            try:
                if number not in closed and s.recv(1) == b"":
                    closed.add(number)
            except BlockingIOError:
                pass
            except ConnectionResetError:
                closed.add(number)
    expect(len(closed) == 136, f"{len(closed)} are closed")
    # Those that stay are served.
    for number in set(range(200)) - closed:
        connections[number].settimeout(60)
        expect(request(get("/"), connections[number])[0] == 200, f"connection {number}")
    for s in connections:
        s.close()
    end = time.monotonic() + 60
    while True:
        try:
            if request(get("/"))[0] == 200:
                break
        except OSError:
            pass
        expect(time.monotonic() < end, "the connections are not free again")
        time.sleep(0.02)
    good()


def noise(seed):
    """Bytes of chance, before the handshake and after it, whole requests and frames with changed bytes."""
    import random
    chance = random.Random(int(seed))
    for round in range(150):
        if round % 3:
            data = bytearray(handshake(token()) if round % 2 else get("/").encode())
        else:
            data = bytearray(frame(1, padded(300)) + frame(9, b"x") + pieces(padded(300), 3) + frame(8, b"\x03\xe8"))
        for _ in range(chance.randint(1, 8)):
            kind, place = chance.randrange(3), chance.randrange(len(data))
            if kind == 0:
                data[place] = chance.randrange(256)
            elif kind == 1:
                del data[place:place + chance.randint(1, 20)]
            else:
                data[place:place] = chance.randbytes(chance.randint(1, 20))
            data = data or bytearray(b"x")
        try:
            if round % 3:
                s = dial()
            else:
                s = Page().s
            s.sendall(data)
            s.settimeout(0.005)
            rest(s)
        except (OSError, TimeoutError):
            pass
        s.close()
        if round % 3 == 0 or round % 10 == 0:
            good()


# --- The life of a page

def life():
    """Early frames, pings, half-open connections, pages that vanish."""
    # Frames that come with the request, before its answer.
    early = frame(9, b"early") + json.dumps({}).encode()[:0]
    page = Page(trailing=early)
    seen = [page.frame() for _ in range(2)]
    expect((10, b"early") in seen, f"{seen}")
    page.leave()
    free()
    page = Page().works()
    for data in [b"", b"a", b"\xff" * 125]:
        page.send(9, data)
        expect(page.frame() == (10, data), "pong")
    page.send(10, b"nobody asked")
    page.ask("capability.query", "q")
    expect(page.response("q")["status"] == "success", "an answer")
    # It only closes its half: it gets what is under way no more, and the server closes.
    page.s.shutdown(socket.SHUT_WR)
    page.code()
    free()
    # Requests that are open when the page goes are given up.
    page = Page().works()
    page.ask("test.hold", "hold")
    while page.message()["payload"]["action"] != "test.held":
        pass
    page.vanish()
    free()


def vanish():
    """Pages that go before, while and after they are connected with the host, which is kept busy meanwhile."""
    for round in range(30):
        s = dial()
        s.sendall(handshake())
        if round % 3 == 0:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if round % 3 == 1:
            time.sleep(0.002 * (round % 5))
        s.close()
    good()


def silent():
    """A page that answers no ping is closed; the pings of this server are 0.2 s apart."""
    # A machine that holds this process up for that long makes a silent page of a good one: it comes again.
    for _ in range(20):
        page, pings = Page(), 0
        try:
            while pings < 3:
                opcode, data = page.frame()
                if opcode == 9:
                    pings += 1
                    page.send(10, data)
            break
        except (EOFError, ConnectionError):
            pass
    expect(pings == 3, f"{pings} pings")
    # It says nothing more, and reads to the end; without a heartbeat that is never.
    expect(page.code() is None, "it is told a code")
    Page().s.close()


def flood(rate):
    """More messages than so many a second are held back, as many as there are; others are served meanwhile."""
    rate = int(rate)
    page = Page().works()
    start = time.monotonic()
    event = frame(1, json.dumps({"v": 1, "type": "event", "correlationId": "e", "payload": {
        "action": "journey.activity", "data": {}}}).encode())
    # What is saved up is taken at once; two seconds' worth more takes two seconds, however fast it comes.
    page.s.sendall(event * (3 * rate))
    page.ask("capability.query", "behind")
    page.response("behind")
    passed = time.monotonic() - start
    expect(passed >= 1.9, f"{3 * rate} messages in {passed:.3f} s")
    # Of 10,000 at once nearly all are still there after others were served: these need 200 s.
    page.s.setblocking(False)
    data, sent = event * 10_000, 0
    while sent < len(data):
        try:
            sent += page.s.send(data[sent:])
        except BlockingIOError:
            break
    for _ in range(100):
        expect(request(get("/"))[0] == 200, "a page for another one")
    page.vanish()
    good()
    # Pings whose answers nobody takes.
    page = Page(buffer=4096)
    page.s.setblocking(False)
    ping, sent = frame(9, b"x" * 125) * 10_000, 0
    while sent < len(ping):
        try:
            sent += page.s.send(ping[sent:])
        except BlockingIOError:
            break
    for _ in range(20):
        expect(request(get("/"))[0] == 200, "a page for another one")
    print(f"{sent // 131} pings were sent")
    page.vanish()
    good()


def held():
    """A page that is held back answers no ping either, and is not taken for gone: the pings of this server are 0.5 s apart."""
    page = Page()
    event = frame(1, json.dumps({"v": 1, "type": "event", "correlationId": "e", "payload": {
        "action": "journey.activity", "data": {}}}).encode())
    page.s.sendall(event * 150)
    page.ask("capability.query", "behind")
    pings = 0
    while True:
        opcode, data = page.frame()
        pings += opcode == 9
        if opcode == 1 and json.loads(data)["correlationId"] == "behind":
            break
    expect(pings >= 3, f"{pings} pings")
    # It goes with thousands of messages that nobody has taken: another page comes in long before those are.
    page.s.setblocking(False)
    try:
        page.s.send(event * 10_000)
    except BlockingIOError:
        pass
    page.s.close()
    Page().s.close()


def unread():
    """A page that takes nothing off loses its connection, while others are served."""
    page = Page(buffer=4096)
    page.ask("test.send", "a", {"size": 100_000, "count": 200})
    start = time.monotonic()
    while time.monotonic() < start + 60:
        expect(request(get("/"))[0] == 200, "a page for another one")
        if request(handshake())[0] == 101:
            break
        time.sleep(0.02)
    expect(time.monotonic() < start + 60, "the host is not free again")
    # What was sent before the limit is whole.
    events = 0
    try:
        while True:
            opcode, data = page.frame()
            events += opcode == 1 and json.loads(data)["payload"]["action"] == "test.event"
    except (EOFError, ConnectionError):
        pass
    expect(events < 200, f"{events} events")
    good()
    # One that reads gets all of them, in their order.
    page = Page().works()
    for name in ["b", "c", "d"]:
        page.ask("test.send", name, {"size": 50_000, "count": 15})
        for index in range(15):
            message = page.message()
            expect(message["payload"].get("data", {}).get("index") == index, f"the order: {str(message)[:200]}")
        expect(page.response(name)["status"] == "success", "the answer")
    page.leave()


def unready():
    """The state of the kiosk is longer than what may wait: there is no handshake, and the server goes on."""
    for _ in range(3):
        got, end = 409, time.monotonic() + 60
        while got == 409 and time.monotonic() < end:
            s = dial()
            s.sendall(handshake())
            got = answer(s)[0]
        expect(got in (None, 101), f"an answer: {got}")
        rest(s)
        expect(request(get("/"))[0] == 200, "a page for another one")


def stay():
    """Is there until it is killed."""
    page = Page()
    page.s.settimeout(60)
    page.code()


# --- Another library

def library():
    """PyPI's websockets, as a page that keeps to the rules, and one that does not know its secret."""
    from websockets.sync.client import connect
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    def opened(secret, origin=ORIGIN, **options):
        return connect(f"ws://{HOST}/bridge", origin=origin, subprotocols=["kiosk.bridge.v1", f"auth.{secret}"],
                       open_timeout=60, **options)

    def admitted():
        """Once the page before has left."""
        end = time.monotonic() + 60
        while True:
            try:
                return opened(token())
            except InvalidStatus as refusal:
                expect(refusal.response.status_code == 409 and time.monotonic() < end, f"{refusal}")
            time.sleep(0.02)

    for secret, origin, expected in [("0" * 32, ORIGIN, 401), (token(), "http://evil.example", 403), (token(), "null", 403)]:
        try:
            opened(secret, origin)
            expect(False, "it came in")
        except InvalidStatus as refusal:
            expect(refusal.response.status_code == expected, f"{refusal}")
    with admitted() as page:
        expect(page.subprotocol == "kiosk.bridge.v1", "subprotocol")
        expect(page.protocol.extensions == [], "extensions")
        expect(json.loads(page.recv())["payload"]["action"] == "host.ready", "host.ready")
        page.ping(b"x").wait(5)
        page.send(json.dumps({"v": 1, "type": "request", "correlationId": "q", "payload": {"action": "capability.query"}}))
        expect(json.loads(page.recv())["status"] == "success", "an answer")
        page.send(iter(["{", '"v":1,"type":"request","correlationId":"r",', '"payload":{"action":"no.such"}}']))
        expect(json.loads(page.recv())["status"] == "unsupported", "fragments")
    expect(page.close_code == 1000, f"{page.close_code}")
    for data, code in [(b"binary", 1003), ("{", 1007), ("x" * 70_000, 1009)]:
        page = admitted()
        page.recv()
        page.send(data)
        try:
            while True:
                page.recv(10)
        except ConnectionClosed as end:
            expect(end.rcvd and end.rcvd.code == code, f"{end}, not {code}")
    free()


CASES = {f.__name__: f for f in [
    good, frames, messages, admission, pages, foreign, http, smuggling, slow, many, noise, life, vanish, silent, flood, held,
    unread, unready, stay, library]}

if __name__ == "__main__":
    CASES[sys.argv[2]](*sys.argv[3:])
    print("ok")

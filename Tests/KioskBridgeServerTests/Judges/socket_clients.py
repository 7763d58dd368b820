#!/usr/bin/env python3
"""Clients of the bridge's server that keep to no rule, written for the standard library's sockets.

    socket_clients.py PORT

Prints a line for each case: its name, and the HTTP status or the close code that the server answered with.
"""
import base64
import http.client
import json
import os
import socket
import struct
import sys
import time
import urllib.request

PORT = int(sys.argv[1])
ORIGIN = f"http://127.0.0.1:{PORT}"


def token(origin=ORIGIN):
    host = origin.removeprefix("http://")
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/token", headers={"Sec-Fetch-Site": "same-origin", "X-Kiosk-Bridge": "1", "Host": host})
    return json.load(urllib.request.urlopen(request, timeout=20))["token"]


class Client:
    def __init__(self, key=None, origin=ORIGIN, host=f"127.0.0.1:{PORT}", more="", address="127.0.0.1", after=b""):
        self.socket = socket.create_connection((address, PORT), timeout=20)
        key = key if key is not None else token(origin)
        self.socket.sendall((
            f"GET /bridge HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: kiosk.bridge.v1, auth.{key}\r\n{more}\r\n").encode() + after)
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            chunk = self.socket.recv(65536)
            if not chunk:
                break
            self.buffer += chunk
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        self.status = int(head.split(b" ")[1]) if head else 0
        self.head = head.decode(errors="replace")

    def frame(self, opcode, payload=b"", fin=True, mask=True, rsv=0, length=None):
        first = (0x80 if fin else 0) | rsv << 4 | opcode
        size = len(payload) if length is None else length
        header = bytes([first])
        if size < 126:
            header += bytes([(0x80 if mask else 0) | size])
        elif size < 65536:
            header += bytes([(0x80 if mask else 0) | 126]) + struct.pack(">H", size)
        else:
            header += bytes([(0x80 if mask else 0) | 127]) + struct.pack(">Q", size)
        key = os.urandom(4) if mask else b""
        data = bytes(byte ^ key[i % 4] for i, byte in enumerate(payload)) if mask else payload
        self.socket.sendall(header + key + data)

    def text(self, text):
        self.frame(1, text.encode())

    def ask(self, action, name="r1"):
        self.text(json.dumps({"v": 1, "type": "request", "correlationId": name, "payload": {"action": action}}))

    def take(self, count):
        while len(self.buffer) < count:
            chunk = self.socket.recv(65536)
            if not chunk:
                raise EOFError
            self.buffer += chunk
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def next(self):
        first, second = self.take(2)
        size = second & 0x7F
        if size == 126:
            size = struct.unpack(">H", self.take(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.take(8))[0]
        return first & 0x0F, self.take(size)

    def close_code(self):
        """The code of the server's close frame; "end" if the connection ended without one."""
        try:
            while True:
                opcode, payload = self.next()
                if opcode == 8:
                    return struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else "empty"
        except (EOFError, ConnectionError):
            return "end"
        except TimeoutError:
            return "nothing"

    def answer(self, name="r1"):
        while True:
            opcode, payload = self.next()
            if opcode == 1:
                message = json.loads(payload)
                if message["type"] == "response" and message["correlationId"] == name:
                    return message["status"]
            elif opcode == 8:
                return "closed"

    def end(self):
        self.socket.close()


def free():
    """Waits until no page is connected."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            client = Client()
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
            continue
        if client.status == 101:
            client.frame(8, struct.pack(">H", 1000))
            client.close_code()
            client.end()
            return
        client.end()
        time.sleep(0.02)


def case(name, body, **options):
    free()
    client = Client(**options)
    try:
        result = body(client) if client.status == 101 else client.status
    except (EOFError, ConnectionError):
        result = "end"
    client.end()
    print(f"{name}: {result}", flush=True)


def sends(*frames):
    def body(client):
        for one in frames:
            try:
                client.frame(*one[0], **one[1]) if isinstance(one, tuple) else client.text(one)
            except ConnectionError:
                break
        return client.close_code()
    return body


def F(*arguments, **options):
    return (arguments, options)


def held_back(client):
    """Six times as many requests as a second has room for: all are answered, and not at once."""
    start = time.monotonic()
    for number in range(150):
        client.ask("capability.query", f"r{number}")
    status = client.answer("r149")
    spent = time.monotonic() - start
    return f"{status}, {'held' if spent > 1.5 else f'{spent:.1f} s'}"


def second_page(client):
    other = Client()
    status = other.status
    other.end()
    client.ask("capability.query")
    return f"{status}, first {client.answer()}"


def slow(client):
    """Asks for much, takes nothing off for a while, and then looks what is left of the connection."""
    for number in range(15):
        client.ask("big", f"r{number}")
    time.sleep(4)
    try:
        while client.socket.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return "kept"
    return "cut off"


used = token()
case("good", lambda client: (client.ask("capability.query"), client.answer())[1])
case("good over ::1", lambda client: (client.ask("capability.query"), client.answer())[1],
     address="::1", host=f"[::1]:{PORT}", origin=f"http://[::1]:{PORT}")
case("token once", lambda client: (client.ask("capability.query"), client.answer())[1], key=used)
case("token twice", None, key=used)
case("no token", None, key="")
case("token of another origin", None, key=token(f"http://localhost:{PORT}"))
case("foreign origin", None, origin="http://evil.example", key="0" * 32)
case("null origin", None, origin="null", key="0" * 32)
case("two origins", None, more=f"Origin: {ORIGIN}\r\n")
case("foreign name", None, host=f"evil.example:{PORT}", key="0" * 32)
case("two names", None, more=f"Host: 127.0.0.1:{PORT}\r\n")
case("second page", second_page)
case("binary", sends(F(2, b"\x00")))
case("bad UTF-8", sends(F(1, b"\xff\xfe")))
case("half a character", sends(F(1, "ä".encode()[:1], fin=False), F(0, b"")))
case("unmasked", sends(F(1, b"{}", mask=False)))
case("reserved bit", sends(F(1, b"{}", rsv=4)))
case("reserved opcode", sends(F(3, b"{}")))
case("reserved control opcode", sends(F(11, b"{}")))
case("long frame", sends(F(1, b"a" * 65_537)))
case("announced gigabytes", sends(F(1, b"", length=1 << 40)))
case("long message in fragments", sends(*[F(1 if i == 0 else 0, b"a" * 30_000, fin=False) for i in range(4)]))
case("many fragments", sends(*[F(1 if i == 0 else 0, b"a", fin=False) for i in range(100)]))
case("continuation of nothing", sends(F(0, b"{}")))
case("text within a message", sends(F(1, b"{", fin=False), F(1, b"{}")))
case("long ping", sends(F(9, b"a" * 126)))
case("ping in fragments", sends(F(9, b"a", fin=False)))
case("no JSON", sends("{"))
case("no message", sends("{}"))
case("deep JSON", sends('{"a":' * 40 + "1" + "}" * 40))

def ping(client):
    client.frame(9, b"hi")
    while True:
        opcode, payload = client.next()
        if opcode == 10:
            return f"pong {payload.decode()}"


case("ping", ping)
case("close", lambda client: (client.frame(8, struct.pack(">H", 1000) + b"bye"), client.close_code())[1])
case("close without a code", lambda client: (client.frame(8), client.close_code())[1])
case("bytes behind the request", lambda client: client.answer("early"),
     after=b"\x81\xfe" + struct.pack(">H", 88) + b"\0\0\0\0"
     + b'{"v":1,"type":"request","correlationId":"early","payload":{"action":"capability.query"}}')
case("150 requests at once", held_back)
case("slow page", slow)
case("good afterward", lambda client: (client.ask("capability.query"), client.answer())[1])


def raw(text):
    connection = socket.create_connection(("127.0.0.1", PORT), timeout=20)
    connection.sendall(text)
    data = b""
    try:
        while chunk := connection.recv(65536):
            data += chunk
    except (TimeoutError, ConnectionError):
        pass
    connection.close()
    return data


def status(data):
    return data.split(b" ")[1].decode() if data.startswith(b"HTTP/") else "end"


name = f"Host: 127.0.0.1:{PORT}\r\n".encode()
print("two lengths:", status(raw(b"GET / HTTP/1.1\r\n" + name + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab")))
print("length and chunks:", status(raw(b"GET / HTTP/1.1\r\n" + name + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")))
print("no HTTP:", status(raw(b"\x16\x03\x01\x00\x05hello\r\n\r\n")))
print("long field:", status(raw(b"GET / HTTP/1.1\r\n" + name + b"X: " + b"a" * 200_000 + b"\r\n\r\n")))
print("HTTP/1.0:", status(raw(b"GET / HTTP/1.0\r\n" + name + b"\r\n")))
print("no name:", status(raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")))
start = time.monotonic()
slowly = status(raw(b"GET / HTTP/1.1\r\n" + name))
print("half a request:", slowly, "cut off" if time.monotonic() - start < 15 else "kept")
many = [socket.create_connection(("127.0.0.1", PORT), timeout=20) for _ in range(100)]
time.sleep(0.5)
ended = 0
for one in many:
    one.setblocking(False)
    try:
        ended += one.recv(1) == b""
    except (BlockingIOError, ConnectionError) as error:
        ended += not isinstance(error, BlockingIOError)
print("connections:", 100 - ended)
for one in many:
    one.close()
case("good at the end", lambda client: (client.ask("capability.query"), client.answer())[1])

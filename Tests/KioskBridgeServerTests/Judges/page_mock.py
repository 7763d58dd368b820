"""A host for the page that does whatever a test says: states that no hardware gives, and hosts that lie.

Each message, of the page and of this host, is judged by bridge.schema.json.
"""
import asyncio
import base64
import hashlib
import hmac
import json
import os
import struct
import zlib
from pathlib import Path

from page_browser import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "Examples/kiosk-page/page"
MODULE = ROOT / "Sources/KioskBridgeServer/Page"
SCHEMA = ROOT / "Sources/KioskBridge/Documentation.docc/Resources/bridge.schema.json"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
         ".js": "text/javascript; charset=utf-8", ".ts": "text/plain; charset=utf-8"}


def picture(width, height, shade):
    """A PNG: an oval on a ground, in greys."""
    rows = b""
    for y in range(height):
        rows += b"\0"
        for x in range(width):
            inside = ((x - width / 2) / (width / 3)) ** 2 + ((y - height / 2) / (height / 2.6)) ** 2 < 1
            rows += bytes([shade if inside else 225])

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return {"imageData": base64.b64encode(png).decode(), "mimeType": "image/png", "width": width, "height": height}


def euro(cents):
    return {"amount": cents, "currency": "EUR", "exponent": 2, "text": f"€{cents // 100}.{cents % 100:02}"}


ORDER = {"id": "K-1042", "total": euro(1234), "lines": [
    {"title": "Flat white", "quantity": 2, "total": euro(760)},
    {"title": "Croissant", "quantity": 1, "total": euro(324)},
    {"title": "Orange juice 0.2 l", "quantity": 1, "total": euro(150)}]}
# The specimen of ICAO Doc 9303-4, appendix A.  # TEST
DOCUMENT = {"type": "P", "issuer": "UTO", "number": "L898902C3", "name": "ANNA MARIA ERIKSSON", "surname": "ERIKSSON",
            "givenNames": "ANNA MARIA", "nationality": "UTO", "dateOfBirth": "1974-08-12", "sex": "F",
            "dateOfExpiry": "2032-04-15"}
CAPABILITIES = ["camera.document", "nfc.read", "payment.start", "pass.read", "receipt.print", "speech.say"]


def capabilities(*missing):
    def one(name):
        if name in missing:
            return {"supported": False, "version": "1.0", "permissionState": "unavailable", "reason": "unplugged"}
        return {"supported": True, "version": "1.0", "permissionState": "granted"}
    return {name: one(name) for name in CAPABILITIES}


def document(authentic="yes", chip="yes", findings=()):
    return {"chipRead": True, "dataGroups": ["DG1", "DG2"], "document": DOCUMENT, "portrait": picture(120, 150, 150),
            "security": {"authentic": authentic, "chipGenuine": chip, "access": "PACE", "findings": list(findings)}}


def paid(outcome="approved", **more):
    return {"outcome": outcome, "amount": ORDER["total"], "receipt": outcome == "approved", **more}


class Refusal(Exception):
    """An answer that is none of success: code, and whether it can be tried again."""

    def __init__(self, code, recoverable=True, status="error"):
        super().__init__(code)
        self.code, self.recoverable, self.status = code, recoverable, status


class Host:
    """`on` has a handler for each action: a value, an exception, or an async function of (data, correlationId)."""

    def __init__(self, validate=None):
        self.validate = validate
        self.faults = []
        self.on = {}
        self.seen = []  # what the page has said; `asked` waits for it
        self.news = asyncio.Event()
        self.wrong_proof = False
        self.silent = False  # answers nothing, opens nothing
        self.down = False  # refuses connections
        self.occupied = False  # by another page: refuses them, too
        self.payment = None
        self.checkout = None
        self.order = ORDER
        self.in_service = True
        self.capabilities = capabilities()
        self.tokens = {}
        self.writer = None
        self.sequence = 0
        self.has_answered = False  # since its last event
        self.connections = 0
        self.requests = 0
        self.paths = set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        return self

    def stop(self):
        self.server.close()
        self.drop()

    # Messages.

    def judge(self, message, side):
        if self.validate:
            self.faults += [f"{side}: {fault}" for fault in self.validate(message, side)]

    def raw(self, text, opcode=1):
        data = text.encode() if isinstance(text, str) else text
        length = len(data)
        head = bytes([0x80 | opcode])
        if length < 126:
            head += bytes([length])
        elif length < 65536:
            head += b"\x7e" + struct.pack(">H", length)
        else:
            head += b"\x7f" + struct.pack(">Q", length)
        if self.writer:
            self.writer.write(head + data)

    def send(self, message, judged=True):
        if judged:
            self.judge(message, "fromHost")
        self.raw(json.dumps(message))

    def event(self, action, judged=True, **data):
        self.sequence += 1
        self.has_answered = False
        payload = {"action": action, "data": {"sequence": self.sequence, **data}}
        self.send({"v": 1, "type": "event", "correlationId": f"e{self.sequence}", "payload": payload}, judged)

    def mark(self):
        """An event behind all that was said to the page, and its number; 0 without a page that could draw it."""
        if not self.writer or self.silent:
            return 0
        if self.has_answered:
            self.event("test.mark", judged=False)
        return self.sequence

    def state(self, state):
        self.event("payment.state", order=ORDER["id"], state=state)

    def ready(self):
        snapshot = {"inService": self.in_service, "order": self.order, "payment": self.payment,
                    "checkout": self.checkout, "capabilities": self.capabilities}
        self.event("host.ready", hostVersion="1.0.0", protocolVersion=1, timestamp="2026-11-25T12:00:00Z",
                   snapshot=snapshot)

    def drop(self):
        """Cuts the wire."""
        if self.writer:
            self.writer.transport.abort()
            self.writer = None

    def count(self, action):
        return sum(1 for seen, _ in self.seen if seen == action)

    def last(self, action):
        return [data for seen, data in self.seen if seen == action][-1]

    def note(self, action, data):
        self.seen.append((action, data))
        self.tell()

    def tell(self):
        """Who waits for something looks again."""
        self.news.set()
        self.news = asyncio.Event()

    async def until(self, condition, what):
        """Waits until the page has said what makes it true."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (value := condition()):
                    await self.news.wait()
                return value
        except TimeoutError:
            raise AssertionError(f"never: {what}: {self.seen[-8:]}")

    async def asked(self, action, count=1, **data):
        """Waits for so many messages with this data among their own, and returns theirs."""
        def found():
            return [one for name, one in self.seen if name == action and data.items() <= one.items()]
        await self.until(lambda: len(found()) >= count, f"{count} of {action} {data}")
        return found()

    async def answer(self, message, token):
        action, data = message["payload"]["action"], message["payload"].get("data", {})
        answer = {"v": 1, "type": "response", "correlationId": message["correlationId"], "payload": {"action": action}}
        default = {
            "bridge.hello": {"proof": "0" * 64 if self.wrong_proof else
                             hmac.new(token.encode(), data.get("nonce", "").encode(), hashlib.sha256).hexdigest()},
            "capability.query": {"hostVersion": "1.0.0", "protocolVersion": 1, "capabilities": self.capabilities},
            "camera.document.capture": {**picture(240, 160, 120),
                                        "quality": {"sharpness": 0.9, "glare": 0.05, "coverage": 0.95}},
            "nfc.read": document(), "order.get": {"order": self.order}, "payment.start": paid(),
            "payment.cancel": {"cancelled": True}, "receipt.print": {"printed": True}, "nfc.cancel": {},
            "pass.read": {"passes": [{"merchant": "Café Utopia", "status": "read", "member": "****4711"}]},
            "speech.say": {}, "speech.stop": {},
        }
        try:
            handler = self.on.get(action, default.get(action, Refusal("UNSUPPORTED_ACTION", False, "unsupported")))
            result = await handler(data, message["correlationId"]) if callable(handler) else handler
            if isinstance(result, Exception):
                raise result
            if result is None:
                return  # never answered
            answer["payload"]["data"] = result
            answer["status"] = "success"
        except Refusal as refusal:
            answer["status"] = refusal.status
            answer["error"] = {"code": refusal.code, "message": "as the test says", "recoverable": refusal.recoverable}
        self.send(answer)
        self.has_answered = True

    # HTTP and WebSocket: RFC 9112, RFC 6455.

    async def serve(self, reader, writer):
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                path = lines[0].split(" ")[1].split("?")[0]
                headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:] if ":" in line)}
                if path == "/bridge":
                    return await self.bridge(reader, writer, headers)
                self.requests += 1
                self.paths.add(path)
                self.tell()
                resource = ("503 Service Unavailable", "text/plain", b"") if self.down else self.resource(path, headers)
                status, kind, body = resource
                csp = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
                       f"connect-src 'self' ws://127.0.0.1:{self.port}; frame-ancestors 'none'; base-uri 'none'; "
                       "form-action 'none'; require-trusted-types-for 'script'")
                writer.write((f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                              f"Content-Security-Policy: {csp}\r\nX-Content-Type-Options: nosniff\r\n"
                              "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\r\n").encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def token(self):
        token = os.urandom(16).hex()
        self.tokens[token] = True
        return token

    def resource(self, path, headers):
        if path == "/token" and headers.get("x-kiosk-bridge") == "1" and headers.get("sec-fetch-site") == "same-origin":
            return "200 OK", "application/json", json.dumps(
                {"token": self.token(), **({"occupied": True} if self.occupied else {})}).encode()
        # The page as another server would give it: without a token.
        name = "index.html" if path in ("/", "/bare") else path[1:]
        file = MODULE / name if name.startswith("kiosk-bridge") else PAGE / name
        if "/" in name or not file.is_file():
            return "404 Not Found", "text/plain", b""
        body = file.read_bytes()
        if path == "/":
            body = body.replace(b'name="kiosk-token" content=""', f'name="kiosk-token" content="{self.token()}"'.encode())
        return "200 OK", TYPES[file.suffix], body

    async def bridge(self, reader, writer, headers):
        offered = [one.strip() for one in headers.get("sec-websocket-protocol", "").split(",")]
        token = offered[1].removeprefix("auth.") if len(offered) == 2 else ""
        allowed = offered[0] == "kiosk.bridge.v1" and headers.get("origin") == self.origin
        if self.down or self.occupied or not allowed or not self.tokens.pop(token, False):
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            return
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        writer.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: kiosk.bridge.v1\r\n\r\n").encode())
        self.writer, self.sequence = writer, 0
        self.connections += 1
        if not self.silent:
            self.ready()
        tasks = set()
        try:
            await self.read(reader, token, tasks)
        finally:
            if self.writer is writer:
                self.writer = None
            for task in tasks:
                task.cancel()

    async def read(self, reader, token, tasks):
        while True:
            first, second = await reader.readexactly(2)
            length = second & 0x7F
            if length == 126:
                length = struct.unpack(">H", await reader.readexactly(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", await reader.readexactly(8))[0]
            mask = await reader.readexactly(4)
            data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(await reader.readexactly(length)))
            if first & 0x0F == 8:
                self.note("close", {"code": struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005})
                return
            message = json.loads(data)
            self.judge(message, "fromPage")
            self.note(message["payload"]["action"], message["payload"].get("data", {}))
            if message["type"] == "request" and not self.silent:
                task = asyncio.ensure_future(self.answer(message, token))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

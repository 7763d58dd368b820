#!/usr/bin/env python3
"""kiosk-host with metrics, a customer who pays and one who is declined, and pages that ask for what they should not.

    host_metrics.py PROGRAMS FOLDER

FOLDER then has the metrics as the socket gave them (socket.prom), and as the file had them after the end (kiosk-host.prom).
"""
import asyncio
import os
import signal
import socket
import stat
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from host_kiosk import Kiosk, Sandbox, expect, until  # noqa: E402

# TEST: the published account number of the card `visa`.
NUMBER = "4761739001010010"


def http(clients, path, text):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(str(path))
    s.sendall(text.encode())
    answer = clients.answer(s)
    expect(s.recv(1) == b"", "the connection ends")
    return answer


def customers(kiosk, sandbox, path):
    sys.argv = ["server_clients", str(kiosk.port)]
    import server_clients as clients

    page = clients.Page()
    names = iter(range(1000))

    def ask(action, data=None):
        name = f"r{next(names)}"
        page.ask(action, name, data)
        return page.response(name)

    def pay():
        order = ask("order.get")["payload"]["data"]["order"]
        return ask("payment.start", {"order": order["id"]})["payload"]["data"]["outcome"]

    sandbox.ask("faults", {"kind": "declined", "calls": 1})
    expect(pay() == "declined", "the first is declined")
    expect(pay() == "approved", "the second pays")
    expect(ask(f"card.x{NUMBER}")["status"] == "unsupported", "an action that nobody knows")
    # No message of the bridge: it has no correlationId that is one.
    page.send(1, b'{"v":1,"type":"request","correlationId":"ok","payload":{"action":"order.get","data":7}}')
    expect(page.response("ok")["status"] == "error", "a message that is none")
    for secret in ["0" * 32, NUMBER * 2]:
        s = clients.dial()
        s.sendall(clients.handshake(secret))
        expect(clients.answer(s)[0] == 401, "a token that nobody was given")
    asking = "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    status, fields, body = http(clients, path, asking.format("/metrics"))
    expect(status == 200 and fields["content-type"].startswith("text/plain; version=0.0.4"), f"{status} {fields}")
    (path.parent / "socket.prom").write_bytes(body)
    expect(http(clients, path, asking.format("/"))[0] == 404, "another path")
    status, fields, _ = http(clients, path, asking.format("/metrics").replace("GET", "POST"))
    expect(status == 405 and fields["allow"] == "GET, HEAD", "another method")
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(str(path))
    s.sendall(b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = clients.rest(s)
    expect(answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"\r\n\r\n"), "HEAD has no body")
    # What is no HTTP ends its connection, and no other.
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(str(path))
    s.sendall(b"\x00" * 200_000)
    clients.rest(s)
    expect(http(clients, path, asking.format("/metrics"))[0] == 200, "it still answers")
    page.vanish()


async def main(programs, folder):
    sandbox = await Sandbox().start(programs)
    kiosk = Kiosk(programs, sandbox)
    path, file = Path(folder) / "metrics.sock", Path(folder) / "kiosk-host.prom"
    arguments = ["--pause", "0", "--card", "visa", "--metrics-socket", str(path), "--metrics-file", str(file),
                 "--metrics-interval", "3600"]
    # What a killed one left behind is in nobody's way, nor is another mode of new files.
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    os.umask(0o077)
    try:
        await kiosk.start(*arguments)
        expect(stat.S_IMODE(path.stat().st_mode) == 0o660, "the socket's mode")
        await until(file.exists, "the file")
        expect(stat.S_IMODE(file.stat().st_mode) == 0o644, "the file's mode")
        expect("contactless_payments_total" in file.read_text(), "the file is whole")
        await asyncio.get_running_loop().run_in_executor(None, customers, kiosk, sandbox, path)
        kiosk.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(kiosk.process.wait(), 60)
        expect(not path.exists(), "the socket is removed")
        expect(sorted(p.name for p in Path(folder).iterdir()) == ["kiosk-host.prom", "socket.prom"], "nothing else is left")
    finally:
        kiosk.stop()
        sandbox.stop()


asyncio.run(main(*sys.argv[1:]))

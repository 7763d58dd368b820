"""kiosk-host and psp-sandbox as processes, which can be killed and started again at the same address with the same folder; and
what customers of all trials do."""
import asyncio
import json
import os
import re
import shutil
import signal
import socket
import tempfile
import time
import urllib.request
from pathlib import Path

# Tests may share two cores with others: what comes soon or never is waited for this long.
PATIENCE = 60


async def until(condition, what):
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        await asyncio.sleep(0.01)


def expect(truth, what):
    if not truth:
        raise AssertionError(what)


def at(name):
    return f"document.querySelector('main')?.dataset.state === '{name}'"


async def leave(page):
    """The customer goes, and the next one has a new page."""
    await page.click("action.finish")
    await page.view("complete")
    await page.eval("document.body.dataset.old = ''")
    await page.click("action.restart")
    await page.until("document.body && !('old' in document.body.dataset)")
    await page.view("launcher")


class Sandbox:
    """The payment service; it outlives the kiosk, as a real one does."""

    async def start(self, programs, *arguments):
        self.process = await asyncio.create_subprocess_exec(
            f"{programs}/psp-sandbox", "--port", "0", "--quiet", *arguments, stdout=asyncio.subprocess.PIPE)
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        self.address = re.search(rb"http://\S+", line)[0].decode()
        return self

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    @property
    def books(self):
        return self.ask("payments")

    def stop(self):
        if self.process.returncode is None:
            self.process.kill()


class Kiosk:
    """kiosk-host with a virtual reader, or with the software reader `model` on a mock USB bus, which it reaches through pcscd as
    any reader."""

    def __init__(self, programs, sandbox=None, model=None):
        self.programs, self.sandbox, self.process = programs, sandbox, None
        # At these nobody listens, and the system gives their port to nobody else, also while the kiosk is not there.
        self.reserved = [socket.socket(family) for family in [socket.AF_INET, socket.AF_INET6]]
        self.port = 0
        for one, address in zip(self.reserved, ["127.0.0.1", "::1"]):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((address, self.port))
            self.port = one.getsockname()[1]
        self.folder = tempfile.mkdtemp(prefix="kiosk-host-")
        self.control = f"{self.folder}/control"
        self.command = [f"{programs}/kiosk-host"]
        if model:
            self.command = [f"{programs}/virtual-reader", "--model", model, "--control", self.control, "--", *self.command]
        else:
            self.command += ["--virtual"]
        self.environment = {
            **os.environ, "XDG_STATE_HOME": self.folder, "XDG_DATA_HOME": self.folder, "STATE_DIRECTORY": "",
            "PCSCLITE_CSOCK_NAME": "/nonexistent"}

    async def start(self, *arguments, **environment):
        service = ["--service", self.sandbox.address] if self.sandbox else []
        self.process = await asyncio.create_subprocess_exec(
            *self.command, "--port", str(self.port), *service, *arguments,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**self.environment, **environment})
        self.address = (await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)).decode().strip()
        if not self.address:
            raise AssertionError(f"kiosk-host does not start: {await self.process.stderr.read()}")
        return self

    def do(self, action):
        """What happens to the software reader: a line of virtual-reader(1), CONTROL SOCKET."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(PATIENCE)
            line.connect(self.control)
            line.sendall(f"{action}\n".encode())
            answer = line.makefile().readline()
            expect(answer == "ok\n", f"{action}: {answer}")

    async def end(self):
        """Ends it as a service manager does, and keeps what it has logged."""
        self.process.send_signal(signal.SIGTERM)
        self.log = (await self.process.communicate())[1].decode()

    async def kill(self):
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    def status(self, field):
        """A number of proc(5), status."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+)", text, re.M)[1])

    def stop(self):
        if self.process and self.process.returncode is None:
            self.process.kill()
        for one in self.reserved:
            one.close()
        shutil.rmtree(self.folder, ignore_errors=True)

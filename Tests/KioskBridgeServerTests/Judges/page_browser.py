"""Debian's Chromium, driven over its DevTools pipe: JSON texts that end with a NUL, on descriptors 3 and 4."""
import asyncio
import itertools
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

# Tests may share two cores with others: what comes at once or never is waited for this long.
PATIENCE = 60
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    async def start(self):
        self.profile = tempfile.mkdtemp(prefix="kiosk-page-")
        to_browser, ours_out = os.pipe()
        ours_in, from_browser = os.pipe()
        arguments = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--incognito",
                     "--no-first-run", "--mute-audio", "--autoplay-policy=no-user-gesture-required", "--lang=en-US",
                     "--disable-background-networking", "--disable-renderer-backgrounding",
                     "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-component-update", "--disable-gpu",
                     "--js-flags=--expose-gc", "about:blank"]
        if os.geteuid() == 0:
            arguments.insert(0, "--no-sandbox")
        line = f'exec chromium "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = await asyncio.create_subprocess_exec(
            "bash", "-c", line, "chromium", *arguments, pass_fds=(to_browser, from_browser),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        loop = asyncio.get_running_loop()
        self.reader = asyncio.StreamReader(limit=1 << 28)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self.reader), os.fdopen(ours_in, "rb"))
        self.transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(ours_out, "wb"))
        self.ids, self.waiting, self.listeners = itertools.count(1), {}, {}
        self.pump = asyncio.ensure_future(self.read())
        await self.call("Browser.getVersion")
        return self

    async def read(self):
        try:
            while True:
                message = json.loads((await self.reader.readuntil(b"\0"))[:-1])
                if "id" in message:
                    waiting = self.waiting.pop(message["id"], None)
                    if waiting and not waiting.done():
                        waiting.set_result(message)
                elif message.get("sessionId") in self.listeners:
                    self.listeners[message["sessionId"]](message["method"], message["params"])
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            pass

    async def call(self, method, session=None, **parameters):
        number = next(self.ids)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self.waiting[number] = asyncio.get_running_loop().create_future()
        self.transport.write(json.dumps(message).encode() + b"\0")
        answer = await asyncio.wait_for(self.waiting[number], 60)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    async def page(self, address, size=(1080, 1920), **media):
        context = (await self.call("Target.createBrowserContext"))["browserContextId"]
        target = (await self.call("Target.createTarget", url="about:blank", browserContextId=context))["targetId"]
        session = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = Page(self, session, context)
        self.listeners[session] = page.listen
        for domain in ["Page", "Runtime", "Log", "Network"]:
            await page.call(f"{domain}.enable")
        await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await page.resize(*size)
        if media:
            features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
            await page.call("Emulation.setEmulatedMedia", features=features)
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=(
            # A clock that tests put forward.
            "globalThis.skew = 0; { const now = performance.now.bind(performance); performance.now = () => now() + skew; }"
            "globalThis.sounds = []; document.addEventListener('kiosk-sound', (e) => sounds.push(e.detail));"
            "new MutationObserver((_, watch) => { if (document.querySelector('main[data-view=launcher]')) {"
            "watch.disconnect(); requestAnimationFrame(() => { globalThis.firstView = performance.now(); }); } })"
            ".observe(document, {subtree: true, childList: true, attributes: true});"))
        await page.call("Page.navigate", url=address)
        return page

    async def stop(self, look=lambda profile: None):
        """Ends it, and has its profile looked at before that is removed."""
        if self.pump.done():
            return
        try:
            await self.call("Browser.close")
            await asyncio.wait_for(self.process.wait(), 10)
        except (asyncio.TimeoutError, RuntimeError):
            self.process.kill()
        self.pump.cancel()
        look(Path(self.profile))
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    def __init__(self, browser, session, context):
        self.browser, self.session, self.context = browser, session, context
        self.console = []
        # What page and host say to each other, for a test that sets it to a list.
        self.frames = None

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def listen(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(one.get("value")) for one in parameters["args"]))
        elif method.startswith("Network.webSocketFrame") and self.frames is not None:
            sent = method == "Network.webSocketFrameSent"
            self.frames.append((sent, parameters.get("response", {}).get("payloadData", "")))
        elif method == "Log.entryAdded":
            self.console.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")

    async def close(self):
        await self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)

    async def resize(self, width, height):
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                        mobile=False)

    async def eval(self, script):
        result = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{script[:200]}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    async def until(self, script, what=None):
        """Waits until the script's value is true."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                value = await self.eval(f"Promise.resolve({script}).then((v) => v instanceof Node || v)")
            except RuntimeError:  # between two documents
                value = None
            if value:
                return value
            if time.monotonic() > end:
                seen = await self.eval("document.querySelector('main')?.dataset.view + ': ' + document.body?.innerText")
                raise AssertionError(f"never: {what or script}\nseen: {seen}\nconsole: {self.console}")
            await asyncio.sleep(0.01)

    async def view(self, name):
        await self.until(f"document.querySelector('main')?.dataset.view === '{name}'", f"view {name}")

    async def click(self, action):
        """Presses where a finger would."""
        selector = action if action.startswith(("[", "#", ".")) else f'[data-action="{action}"]'
        box = await self.until(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return r.width ? [r.x + r.width / 2, r.y + r.height / 2] : null; })()", f"control {action}")
        for kind in ["mousePressed", "mouseReleased"]:
            await self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    async def key(self, name, modifiers=0):
        code = {"key": name, "code": name if name != " " else "Space", "windowsVirtualKeyCode": KEYS.get(name, 0),
                "modifiers": modifiers}
        text = {"Enter": "\r", " ": " "}.get(name)
        await self.call("Input.dispatchKeyEvent", type="keyDown", **code, **({"text": text} if text else {}))
        await self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    async def type(self, text):
        await self.call("Input.insertText", text=text)

    async def tree(self):
        """What a screen reader is told, a line for each node."""
        nodes = (await self.call("Accessibility.getFullAXTree"))["nodes"]
        by_id = {node["nodeId"]: node for node in nodes}
        hidden = {"none", "generic", "InlineTextBox", "StaticText", "ListMarker", "LineBreak"}
        lines = []

        def walk(node, depth):
            role = node.get("role", {}).get("value", "none")
            shown = not node.get("ignored") and role not in hidden
            if shown:
                line = "  " * depth + role
                properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
                if properties.get("level"):
                    line += f" {properties['level']}"
                if node.get("name", {}).get("value"):
                    line += f" “{node['name']['value']}”"
                for name in ["pressed", "checked", "invalid", "focused"]:
                    if str(properties.get(name, "false")) not in ("false", "None"):
                        line += f" {name}"
                lines.append(line)
            if not node.get("ignored") and role == "StaticText" and lines and not node.get("name", {}).get("value") in lines[-1]:
                lines.append("  " * depth + f"“{node['name']['value']}”")
            for child in node.get("childIds", []):
                if child in by_id:
                    walk(by_id[child], depth + (1 if shown else 0))
        walk(nodes[0], 0)
        return "\n".join(lines) + "\n"

    async def screenshot(self, path, size=None, scale=1):
        """A PNG as large as the screen; or a WebP of `size` at `scale`."""
        import base64
        options = {"format": "png"}
        if path.suffix == ".webp":
            clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": scale}
            options = {"format": "webp", "quality": 75, "clip": clip}
        data = (await self.call("Page.captureScreenshot", **options))["data"]
        path.write_bytes(base64.b64decode(data))

    async def scan(self):
        """The QR codes on the screen, as a phone's camera reads them."""
        with tempfile.NamedTemporaryFile(suffix=".png") as picture:
            await self.screenshot(Path(picture.name))
            zbar = await asyncio.create_subprocess_exec(
                "zbarimg", "--nodbus", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", picture.name, stdout=asyncio.subprocess.PIPE)
            return (await zbar.communicate())[0].decode().splitlines()

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
# What a document has besides its own, for those who drive it.
INSTRUMENTS = """
  // The page's clock stands until it is put forward: no customer has gone because a machine is slow.  What waits are real timers:
  // the pauses that were asked for last, and those that are not over.
  globalThis.skew = 0;
  globalThis.pauses = [];
  globalThis.timers = new Set();
  globalThis.ticks = 0;
  {
    const [set, clear, every] = [setTimeout, clearTimeout, setInterval];
    globalThis.realTime = performance.now.bind(performance);
    performance.now = () => skew;
    globalThis.setTimeout = (body, pause, ...rest) => {
      if (pauses.push(pause) > 100) pauses.shift();
      const timer = set(() => { timers.delete(timer); body(...rest); }, pause);
      timers.add(timer);
      return timer;
    };
    globalThis.clearTimeout = (timer) => { timers.delete(timer); clear(timer); };
    globalThis.setInterval = (body, pause) => every(() => { body(); ticks += 1; }, pause);
    // Between two tries to connect: of all that a page waits for only these are so short.
    globalThis.isBackOff = (pause) => pause >= 250 && pause <= 5000;
    globalThis.soon = () => new Promise((done) => set(done, 5));
    // While a finger is on its way to a control the page hears nothing: what is drawn then moves the control away.
    let [held, isReleasing] = [null, false];
    globalThis.hold = () => held === null && Boolean(held = []);
    globalThis.release = () => {
      if (isReleasing) return;
      isReleasing = true;
      set(() => {
        const messages = held;
        [held, isReleasing, globalThis.aim] = [null, false, null];
        for (const hear of messages) hear();
      });
    };
    const { set: listen } = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage');
    Object.defineProperty(WebSocket.prototype, 'onmessage', { set(hear) {
      listen.call(this, (event) => held ? held.push(() => hear(event)) : hear(event));
    } });
  }
  globalThis.sounds = [];
  document.addEventListener('kiosk-sound', ({ detail }) => sounds.push(detail));
  new MutationObserver((_, watch) => {
    if (!document.querySelector('main[data-view=launcher]')) return;
    watch.disconnect();
    requestAnimationFrame(() => { globalThis.firstView = realTime(); });
  }).observe(document, { subtree: true, childList: true, attributes: true });
  // What a finger meets: the control that was aimed at, or what a screen has in its place.
  globalThis.isControl = (node, selector) => {
    const control = document.querySelector(selector);
    return control !== null && (control.contains(node) || [...control.labels ?? []].some((one) => one.contains(node)));
  };
  for (const kind of ['pointerdown', 'mouseup', 'click']) {
    addEventListener(kind, ({ target, isTrusted }) => {
      if (!isTrusted || !globalThis.aim) return;
      pressed(JSON.stringify([kind, isControl(target, aim), target.outerHTML?.slice(0, 200) ?? '']));
      if (kind !== 'pointerdown') release();
    }, { capture: true });
  }
"""
# Where to press a control, once it is drawn and nothing lies above it.
AIM = """(() => {
  const control = document.querySelector(%(selector)s);
  if (!control) return null;
  control.scrollIntoView({ block: 'center' });
  const { x, y, width, height } = control.getBoundingClientRect();
  const [left, top] = [x + width / 2, y + height / 2];
  if (!width || !isControl(document.elementFromPoint(left, top), %(selector)s) || !hold()) return null;
  globalThis.aim = %(selector)s;
  return [left, top];
})()"""
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
        await page.call("Runtime.addBinding", name="pressed")
        await page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await page.resize(*size)
        if media:
            features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
            await page.call("Emulation.setEmulatedMedia", features=features)
        await page.call("Page.addScriptToEvaluateOnNewDocument", source=INSTRUMENTS)
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
        # Makes its host tell where it is, and returns the number of that event; 0 without a connection.
        self.mark = lambda: 0
        self.presses = asyncio.Queue()

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def listen(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.bindingCalled":
            self.presses.put_nowait(json.loads(parameters["payload"]))
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
        # The document looks itself, for a while; then again, as it may have become another one.
        look = f"""(async () => {{
          for (let round = 0; round < 100; round += 1) {{
            const value = await ({script});
            if (value) return value instanceof Node || value;
            if (!globalThis.soon) return null;
            await soon();
          }}
        }})()"""
        while True:
            try:
                if value := await self.eval(look):
                    return value
            except RuntimeError:  # between two documents
                await asyncio.sleep(0.01)
            if time.monotonic() > end:
                seen = await self.eval("document.querySelector('main')?.dataset.view + ': ' + document.body?.innerText")
                raise AssertionError(f"never: {what or script}\nseen: {seen}\nconsole: {self.console}")

    async def view(self, name):
        await self.until(f"document.querySelector('main')?.dataset.view === '{name}'", f"view {name}")

    async def settled(self):
        """Waits until what the host has told is drawn, answers included."""
        if number := self.mark():
            await self.until(f"Number(document.body?.dataset.drawn) >= {number}", f"what the host told up to event {number}")

    async def painted(self):
        """Waits until all of it is on the screen as it stays."""
        await self.settled()
        await self.eval("""Promise.all(document.getAnimations().filter((one) => isFinite(one.effect.getComputedTiming().endTime))
            .map((one) => one.finished.catch(() => {}))).then(() => new Promise((done) =>
                requestAnimationFrame(() => requestAnimationFrame(() => done(0)))))""")

    async def click(self, action):
        """Puts a finger on a control and lifts it, waits until the control was pressed, and returns the place.

        The browser looks what lies under a finger when that is lifted.  Of a mouse's button it wants the same element at both ends:
        a view that is drawn anew between the two swallows the press.
        """
        selector = action if action.startswith(("[", "#", ".")) else f'[data-action="{action}"]'
        await self.settled()
        x, y = await self.until(AIM % {"selector": json.dumps(selector)}, f"control {action}")
        while not self.presses.empty():
            self.presses.get_nowait()
        await self.touch(x, y)
        while True:
            try:
                kind, is_control, what = await asyncio.wait_for(self.presses.get(), PATIENCE)
            except asyncio.TimeoutError:
                raise AssertionError(f"no finger came to {action}")
            if kind == "click" and is_control:
                return x, y
            if kind != "mouseup" and not is_control:
                raise AssertionError(f"a finger for {action} came to {what}")
            if kind == "mouseup":
                try:
                    await self.eval("0")
                except RuntimeError:  # the press has opened another document
                    pass
                if self.presses.empty():
                    raise AssertionError(f"the press of {action} was swallowed at {what}")

    async def touch(self, x, y):
        """Puts a finger on a place, whatever lies there, and lifts it."""
        # Both at once: a finger that rests is another gesture.
        await asyncio.gather(self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}]),
                             self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[]))

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

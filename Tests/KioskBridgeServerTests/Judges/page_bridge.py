"""What kiosk-bridge.js does: proofs, requests, hosts that lie or vanish."""
import asyncio
import json

from page_mock import ORDER
from page_tour import Later

# Whether the page has waited to connect once more.
TRIES = "pauses.some(isBackOff)"
MODULE = "const { KioskBridge, BridgeError } = await import('/kiosk-bridge.js');"


async def script(page, body):
    """Runs a program with the page's module; what fails is an object of its members."""
    return await page.eval(f"""(async () => {{ {MODULE}
      const failure = (promise) => promise.then((value) => ({{ value }}),
        (e) => ({{ code: e.code, recoverable: e.recoverable, ours: e instanceof BridgeError, id: typeof e.correlationId }}));
      {body} }})()""")


async def bridge(bench):
    # Wrong proof: closed, nothing that a customer typed is sent, and no second try.
    host = await bench.host()
    host.wrong_proof = True
    page = await bench.page(host)
    await page.view("refused")
    await host.asked("close", code=4403)
    # It has not even begun to wait for a second try, and nothing is left that could begin one.  Where the machine is so slow that the
    # page's patience ends before the proof (4408), it has come again.
    await page.until("timers.size === 0")
    codes = [data["code"] for one, data in host.seen if one == "close"]
    bench.expect(codes == [4408] * (len(codes) - 1) + [4403], codes)
    tries = await page.eval("pauses.filter(isBackOff).length")
    bench.expect((host.connections, tries) == (len(codes), len(codes) - 1), "it comes back to a wrong host")
    bench.expect({one for one, _ in host.seen} == {"bridge.hello", "close"}, host.seen)

    # The page's own connection stays; the module is also used by hand, in a page without the application.
    host = await bench.host()
    page = await bench.page(host, "bare")
    await page.view("noHost")
    missing = await script(page, """const bridge = new KioskBridge(); bridge.connect();
      return [bridge.isEmbedded, bridge.isOpen, await failure(bridge.request('order.get'))];""")
    bench.expect(missing == [False, False, {"code": "UNSUPPORTED", "recoverable": False, "ours": True, "id": "object"}], missing)
    bench.expect(host.connections == 0, "it connects without a token")

    async def open_bridge(name):
        """A bridge of the module in globalThis, whose events are noted."""
        token = host.token()
        return await script(page, f"""
          document.querySelector('meta[name="kiosk-token"]').content = '{token}';
          const bridge = globalThis.{name} = new KioskBridge();
          document.querySelector('meta[name="kiosk-token"]').content = '';
          globalThis.noted = [];
          for (const name of ['open', 'lost', 'refused', 'host.locale']) bridge.on(name, (data) => noted.push([name, data]));
          bridge.connect(); await bridge.request('order.get'); return bridge.isOpen;""")

    bench.expect(await open_bridge("one"), "not open")
    noted = await page.eval("noted.map(([name]) => name)")
    bench.expect(noted == ["open"], noted)
    bench.expect(await page.eval("noted[0][1].inService"), "no snapshot")

    # Requests: in parallel, without an answer, given up, too many, too large.
    host.on["order.get"] = later = Later()
    both = await script(page, """globalThis.first = one.request('order.get'); first.catch(() => {});
      return (await one.request('capability.query')).hostVersion;""")
    bench.expect(both == "1.0.0", both)
    later.give({"order": None})
    bench.expect(await script(page, "return await first;") == {"order": None}, "first")
    host.on["nfc.cancel"] = None
    got = await script(page, "return await failure(one.request('nfc.cancel', {}, { timeout: 50 }));")
    bench.expect(got == {"code": "TIMEOUT", "recoverable": True, "ours": True, "id": "string"}, got)
    got = await script(page, "return await failure(one.request('nfc.cancel', {}, { signal: AbortSignal.timeout(20) }));")
    bench.expect(got["code"] == "CANCELLED", got)
    got = await script(page, "return await failure(one.request('speech.say', { key: 'x'.repeat(70000) }));")
    bench.expect(got["code"] == "INVALID_REQUEST", got)
    got = await script(page, """const many = Array.from({ length: 17 }, () => failure(one.request('nfc.cancel', {}, { timeout: 100 })));
      return (await Promise.all(many)).map(({ code }) => code);""")
    bench.expect(got == ["TIMEOUT"] * 16 + ["BUSY"], got)

    # Answers: a second one, one that nobody asked for, of another action, of another form, with both or none.
    async def twice(data, correlation):
        answer = {"v": 1, "type": "response", "correlationId": correlation, "status": "success",
                  "payload": {"action": "order.get", "data": {"order": None}}}
        host.send(answer)
        host.send({**answer, "correlationId": "never-asked"})
        return {"order": ORDER}
    host.on["order.get"] = twice
    bench.expect(await script(page, "return await one.request('order.get');") == {"order": None}, "the first answer counts")
    bench.expect(await page.eval("one.isOpen"), "a second answer ends the connection")

    def lying(**changes):
        async def answer(data, correlation):
            message = {"v": 1, "type": "response", "correlationId": correlation, "status": "success",
                       "payload": {"action": "order.get", "data": {"order": None}}}
            host.send({**message, **changes}, judged=False)
        return answer
    order = {**ORDER, "total": {**ORDER["total"], "amount": 12.34}}
    error = {"code": "BUSY", "message": "", "recoverable": True}
    for changes in [{"payload": {"action": "nfc.cancel", "data": {}}}, {"payload": {"action": "order.get", "data": {"order": order}}},
                    {"payload": {"action": "order.get"}}, {"error": error}, {"status": "error"},
                    {"payload": {"action": "order.get", "data": {"order": {**ORDER, "lines": [None]}}}}]:
        host.on["order.get"] = lying(**changes)
        got = await script(page, "return await failure(one.request('order.get'));")
        bench.expect(got.get("code") == "INTERNAL_ERROR", f"{changes}: {got}")
    del host.on["order.get"]

    # Messages that are none: the connection ends, a new one brings the state; what was asked fails.
    good = {"v": 1, "type": "event", "correlationId": "e", "payload": {"action": "host.locale", "data": {"locale": "de"}}}
    host.on["nfc.cancel"] = None
    for name, bad in {
            "no JSON": "{", "list": "[]", "null": "null", "no type": json.dumps({**good, "type": "order"}),
            "long id": json.dumps({**good, "correlationId": "e" * 65}), "no payload": json.dumps({**good, "payload": None}),
            "no sequence": json.dumps(good),
            "gap": json.dumps({**good, "payload": {"action": "host.locale", "data": {"locale": "de", "sequence": 7}}}),
            "form": json.dumps({**good, "payload": {"action": "host.locale", "data": {"locale": 1, "sequence": 2}}}),
            "code": json.dumps({**good, "type": "response", "status": "error", "error": {"code": "<b>", "message": "", "recoverable": True}}),
            "binary": None, "long": json.dumps({**good, "payload": {"action": "host.locale", "data": {
                "locale": "de", "sequence": 2, "pad": "x" * (16 * 1024 * 1024)}}})}.items():
        before, asked = host.connections, host.count("nfc.cancel")
        task = asyncio.ensure_future(page.eval("""one.request('nfc.cancel').then(() => 'answered', (e) => e.code)"""))
        await host.asked("nfc.cancel", asked + 1)
        host.raw(b"\0\1", 2) if bad is None else host.raw(bad)
        bench.expect(await task == "DISCONNECTED", f"{name}: {await task}")
        await page.until("one.isOpen", f"open again after {name}")
        bench.expect(host.connections == before + 1, f"{name}: {host.connections - before} connections")
    bench.expect(await page.eval("noted.filter(([name]) => name === 'host.locale').length") == 0, "a bad event was told")
    # A good one, and one that only a newer host knows.
    host.event("host.novelty", judged=False)
    host.event("host.locale", locale="de")
    await page.until("noted.at(-1)[0] === 'host.locale' && noted.at(-1)[1].locale === 'de'")

    # Nothing is told of a connection that an event's listener has ended.
    await page.eval("""(() => { one.on('told', () => noted.push(['told']));
      const off = one.on('host.locale', () => { off(); one.close(); }); })()""")
    host.event("host.locale", locale="en")
    await page.until("noted.at(-1)[0] === 'lost'", "the connection's end as the last that is told of it")
    # Nor an event that was held, whatever its number.
    ready = host.ready

    def ready_and_first_again():
        ready()
        host.sequence = 0
        host.event("host.locale", locale="fr")
    host.ready = ready_and_first_again
    await page.eval("""(() => { noted.length = 0;
      const off = one.on('open', () => { off(); one.close(); }); one.connect(); })()""")
    await page.until("noted.length > 0")
    noted = await page.eval("noted.map(([name]) => name)")
    bench.expect(noted == ["open", "lost"], f"told of a connection that a listener has ended: {noted}")
    host.ready = ready
    await page.eval("one.connect()")
    await page.until("one.isOpen")

    # A listener that closes and connects makes one connection, whoever ended the last one.
    for end in ["page", "host"]:
        before = host.connections
        await page.eval("""(() => { noted.length = 0;
          const off = one.on('lost', () => { off(); pauses.length = 0; one.close(); one.connect(); }); })()""")
        await page.eval("one.close()") if end == "page" else host.drop()
        await page.until("noted.at(-1)?.[0] === 'told'")
        noted = await page.eval("noted.map(([name]) => name)")
        bench.expect(noted == ["lost", "open", "told"], f"ended by the {end}: {noted}")
        bench.expect(host.connections == before + 1 and not await page.eval(TRIES), f"ended by the {end}: two connections")

    async def while_fetching(act):
        """Connects, and acts before the answer with the token comes; returns when the page has had that."""
        await page.eval(f"""(async () => {{
          one.close();
          await new Promise((done) => {{
            const real = fetch;
            globalThis.fetch = async (...asked) => {{
              globalThis.fetch = real;
              {act}
              const answer = await real(...asked);
              const body = await answer.text();
              done();
              return {{ ok: answer.ok, json: async () => JSON.parse(body) }};
            }};
            one.connect();
          }});
          await soon(); }})()""")

    # Who closes while a token is fetched is not connected, nor is another token fetched.
    host.down = True
    await while_fetching("pauses.length = 0; one.close();")
    bench.expect(not await page.eval(TRIES), "a closed bridge comes back")
    # What waits for a connection that the page gives up ends at once.
    got = await script(page, """
      one.connect(); const asked = failure(one.request('order.get')); one.close(); return await asked;""")
    bench.expect(got["code"] == "DISCONNECTED", f"a request that waits while the page closes: {got}")
    host.down = False
    # Who also connects has one connection.
    before = host.connections
    await while_fetching("one.close(); one.connect(); await one.request('order.get');")
    got = await script(page, "return await failure(one.request('order.get'));")
    bench.expect(got == {"value": {"order": ORDER}}, f"an old token took the connection's place: {got}")
    bench.expect(host.connections == before + 1, f"{host.connections - before} connections")

    # Back-off, a token for each try, and requests that wait for the next connection.
    host.down = True
    used = host.requests
    await page.eval("pauses.length = 0")
    host.drop()
    await page.until("!one.isOpen")
    waiting = asyncio.ensure_future(script(page, "return await failure(one.request('order.get'));"))
    await host.until(lambda: host.requests >= used + 3, "the third try")
    # Each pause is twice as long as the last.
    pauses = await page.eval("pauses.filter(isBackOff)")
    bench.expect(pauses[:3] == [250, 500, 1000], f"pauses between the tries: {pauses}")
    host.down = False
    bench.expect(await waiting == {"value": {"order": ORDER}}, await waiting)

    # Another version: no second try.
    before = host.connections
    await page.eval("pauses.length = 0")
    host.raw(json.dumps({**good, "v": 2}))
    await page.until("noted.at(-1)[0] === 'refused' && noted.at(-1)[1].code === 'VERSION_MISMATCH'")
    await page.until("timers.size === 0")
    bench.expect(host.connections == before and not await page.eval(f"one.isOpen || {TRIES}"), "it comes back to another version")
    # Who connects when it hears that the link is lost is not told that there is no second try.
    await page.eval("one.connect()")
    await page.until("one.isOpen")
    await page.eval("(() => { noted.length = 0; const off = one.on('lost', () => { off(); one.connect(); }); })()")
    host.raw(json.dumps({**good, "v": 2}))
    await page.until("noted.at(-1)?.[0] === 'told'")
    noted = await page.eval("noted.map(([name]) => name)")
    bench.expect(noted == ["lost", "open", "told"], f"refused, and connected again: {noted}")
    await page.eval("one.close()")

    # A host that never proves itself is told nothing.
    host.silent = True
    seen = len(host.seen)
    got = asyncio.ensure_future(script(page, f"""
      document.querySelector('meta[name="kiosk-token"]').content = '{host.token()}';
      const bridge = new KioskBridge(); bridge.connect(); bridge.send('journey.started');
      const got = await failure(bridge.request('nfc.read', {{ type: 'document', can: '123456' }}, {{ timeout: 500 }}));
      bridge.close(); return got;"""))
    bench.expect((await got)["code"] == "DISCONNECTED", await got)
    bench.expect({one for one, _ in host.seen[seen:]} <= {"bridge.hello", "close"}, host.seen[seen:])

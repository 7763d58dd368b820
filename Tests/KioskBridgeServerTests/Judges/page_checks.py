"""Groups of checks of the page: each takes a Bench."""
import difflib
import hashlib
import re
import time
from pathlib import Path

from page_bridge import bridge
from page_checkout import checkout_tour
from page_checkout_acts import checkout_code, checkout_form, checkout_states, checkout_ways
from page_journeys import REQUESTS, documents, keyboard, once, payments, service
from page_mock import MODULE, PAGE, ROOT
from page_tour import Later, fill, tap, to_key, tour

TREES = Path(__file__).resolve().parent / "page_trees"
SIZES = {"portrait": (1080, 1920), "landscape": (1920, 1080)}

# What is wrong with the view that is shown: keys, small targets, what is cut off, secrets where they do not belong.
INSPECT = r"""(async () => {
  const { keys } = await import('/strings.js');
  const faults = [];
  const root = document.documentElement;
  const shown = document.body.innerText;
  const known = keys.filter((key) => key.includes('.'));
  for (const key of known) if (shown.includes(key)) faults.push(`the key ${key} is shown`);
  if (/undefined|null|NaN|\[object|\{\w+\}/.test(shown)) faults.push(`not a text: ${shown}`);
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1);
    faults.push(`${root.scrollWidth} wide in ${root.clientWidth}: ${wide.slice(0, 4).map((e) => e.className || e.tagName)}`);
  }
  const targets = 'main button, footer button, dialog[open] button, input:not([type=radio]), textarea, summary, .choice';
  for (const one of document.querySelectorAll(targets)) {
    const box = one.getBoundingClientRect();
    if (box.width < 43.9 || box.height < 43.9) faults.push(`${one.outerHTML.slice(0, 80)}: ${box.width} x ${box.height}`);
    if (one.matches('button') && one.scrollWidth > one.clientWidth + 1) faults.push(`${one.textContent} is cut off`);
  }
  if (document.querySelectorAll('h1').length !== 1) faults.push('not one heading');
  if (localStorage.length + sessionStorage.length > 0 || document.cookie) faults.push('something is stored');
  return faults;
})()"""

AXE = """axe.run(document, {runOnly: {type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}}).then(
  ({violations}) => violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')))"""


async def inspect(bench, page, name):
    bench.faults += [f"{name}: {fault}" for fault in await page.eval(INSPECT)]


async def pictures(bench, folder):
    """Each view in both sizes of screen."""
    folder.mkdir(parents=True, exist_ok=True)
    host = await bench.host()
    page = await bench.page(host)

    async def stop(name):
        for size, (width, height) in SIZES.items():
            await page.resize(width, height)
            await page.painted()
            await page.screenshot(folder / f"{name}-{size}.png")

    await tour(host, page, stop)
    host = await bench.host()
    page = await bench.page(host)
    await checkout_tour(host, page, stop)
    host = await bench.host()
    page = await bench.page(host)
    await to_key(page)
    await page.eval("skew += 45_000; 0")
    await page.until("document.getElementById('idle').open")
    await stop("idle")
    for name, query, action in [("large", "", "tools.large"), ("low", "", "tools.low"), ("pseudo", "?locale=pseudo", None)]:
        page = await bench.page(host, query)
        await page.view("launcher")
        if action:
            await page.click(action)
        await stop(f"{name}-launcher")
        await page.click("journey.payment")
        await page.view("order")
        await stop(f"{name}-order")
        await page.click("action.cancel")
        await to_key(page)
        await stop(f"{name}-key")


# What is fetched when somebody needs it.
LATER = {"checkout.js", "checkout.css", "keypad.js", "mrz.js", "passport.js"}
# The pictures of README.md.
PICTURES = ROOT / "Examples/kiosk-page/pictures"
PICTURED = ["launcher", "order", "pay-presentCard", "pay-approved", "pay-lost", "key", "hold-reading", "result-yes",
            "checkout-selection", "checkout-card", "checkout-failure", "checkout-success"]


def made_of():
    """What the pictures are made of, as far as it can be compared: what a screen reader is told of each view, and its style."""
    files = [TREES / f"{name}.txt" for name in PICTURED] + [PAGE / "style.css", PAGE / "checkout.css", PAGE / "icon.svg"]
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()[:16]} {file.name}\n" for file in files)


async def documentation(bench):
    """The pictures of README.md anew."""
    PICTURES.mkdir(exist_ok=True)
    host = await bench.host()
    page = await bench.page(host)

    async def stop(name):
        for size, (width, height) in SIZES.items() if name in PICTURED else []:
            await page.resize(width, height)
            await page.painted()
            await page.screenshot(PICTURES / f"{name}-{size}.webp", (width, height), 0.35)

    await tour(host, page, stop)
    host = await bench.host()
    page = await bench.page(host)
    await checkout_tour(host, page, stop)
    (PICTURES / "made-of.txt").write_text(made_of())


async def with_trees(bench, judge, walk):
    host = await bench.host()
    page = await bench.page(host)

    async def stop(name):
        # A reference is another one each time.
        await judge(page, name, re.sub(r"\b[0-9A-F]{8}\b", "0A1B2C3D", await page.tree()))

    await walk(host, page, stop)


async def write(bench):
    """The accessibility trees anew."""
    TREES.mkdir(exist_ok=True)

    async def judge(page, name, tree):
        (TREES / f"{name}.txt").write_text(tree)

    await with_trees(bench, judge, tour)
    await with_trees(bench, judge, checkout_tour)


def trees(walk):
    return {file.stem for file in TREES.glob("*.txt") if file.stem.startswith("checkout") == (walk is checkout_tour)}


async def with_judge(bench, walk):
    """In each view axe-core finds nothing, and a screen reader is told what the golden file says.  Returns the views."""
    axe = (Path(__import__("axe_core_python").__file__).parent / "axe.min.js").read_text()
    seen = set()

    async def judge(page, name, tree):
        seen.add(name)
        if await page.eval("typeof axe === 'undefined'"):
            await page.eval(f"{axe}; 0")
        bench.faults += [f"{name}: axe: {one}" for one in await page.eval(AXE)]
        await inspect(bench, page, name)
        golden = TREES / f"{name}.txt"
        expected = golden.read_text() if golden.exists() else "no golden file\n"
        if tree != expected:
            difference = difflib.unified_diff(expected.splitlines(), tree.splitlines(), "golden", "seen", lineterm="", n=1)
            bench.expect(False, f"{name}:\n" + "\n".join(difference))

    await with_trees(bench, judge, walk)
    return seen


async def views(bench, walk=tour):
    unseen = trees(walk) - await with_judge(bench, walk)
    bench.expect(not unseen, f"views that were not reached: {unseen}")


async def glance(bench):
    """Three views as all others: plain, then large in forced colors and narrow, and right to left; nothing is cut off."""
    async def walk(host, page, stop):
        await page.view("launcher")
        await stop("launcher")
        await page.click("journey.payment")
        await page.view("order")
        await stop("order")
        await page.click("action.cancel")
        await to_key(page)
        await stop("key")

    await with_judge(bench, walk)
    for query, media in [("?locale=pseudo", {}), ("", {"forced_colors": "active", "prefers_reduced_motion": "reduce"})]:
        page = await bench.page(await bench.host(), query, **media)

        async def stop(name):
            if media and name == "launcher":
                await page.click("tools.large")
            for width, height in [(540, 960), (320, 640)] if media else SIZES.values():
                await page.resize(width, height)
                await inspect(bench, page, f"{name} at {width} x {height}{query}")

        await walk(None, page, stop)


async def checkout_views(bench):
    """The same of the checkout's views; and right to left, large, narrow, in forced colors nothing is cut off."""
    await views(bench, checkout_tour)
    for query, media in [("?locale=pseudo", {}), ("", {"forced_colors": "active", "prefers_reduced_motion": "reduce"})]:
        host = await bench.host()
        page = await bench.page(host, query, **media)

        async def stop(name):
            if media and name == "checkout-selection":
                await page.click("tools.large")
            for width, height in [(540, 960), (320, 640)] if media else SIZES.values():
                await page.resize(width, height)
                await inspect(bench, page, f"{name} at {width} x {height}{query}")

        await checkout_tour(host, page, stop)


async def pseudo(bench):
    """Right to left and 1.4 times as long: nothing is cut off in either size of screen."""
    host = await bench.host()
    page = await bench.page(host, "?locale=pseudo")

    async def stop(name):
        for width, height in SIZES.values():
            await page.resize(width, height)
            await inspect(bench, page, f"{name} at {width} x {height}")
        bench.expect(await page.eval("document.documentElement.dir") == "rtl", f"{name}: not right to left")
        plain = await page.eval(r"""[...document.querySelectorAll('h1, .lead, .button, .tool, label, dt, legend')]
            .filter((e) => !e.lang && !/[áëïøûñÅÊÖÇ·]/.test(e.textContent) && !e.querySelector('bdi')).map((e) => e.textContent)""")
        bench.expect(plain in ([], ["⌫"]), f"{name}: not of the table: {plain}")

    await tour(host, page, stop)


async def enlarged(bench):
    """Large text at 200 %, and a width of 320: nothing is lost.  Forced colors and without motion."""
    host = await bench.host()
    page = await bench.page(host, forced_colors="active", prefers_reduced_motion="reduce")

    async def larger():
        await page.click("tools.large")
        await page.click("tools.low")

    async def stop(name):
        # 540 x 960 is 1080 x 1920 at 200 %.
        for width, height in [(540, 960), (320, 640)]:
            await page.resize(width, height)
            await inspect(bench, page, f"{name} at {width} x {height}")
        moving = await page.eval("document.getAnimations().length")
        bench.expect(moving == 0, f"{name}: {moving} animations")

    await tour(host, page, stop, larger)


async def texts(bench):
    """The table of texts is complete, each text is used, and a switch of language on any view keeps what was typed."""
    host = await bench.host()
    page = await bench.page(host)
    await page.view("launcher")
    table = await page.eval("""import('/strings.js').then(({ keys, languages, pattern }) =>
        Object.fromEntries(keys.map((key) => [key, Object.keys(languages).map((one) => pattern(key, one))])))""")
    row = re.findall(r'^  "([^"]+)": \[(.*)\],$', (PAGE / "strings.js").read_text(), re.M)
    bench.expect(len(row) == len(table), f"{len(row)} rows, {len(table)} keys")
    # Words that are the same in two languages.
    same = {"page.title", "order.total", "result.name", "capability.ready"}
    for key, patterns in table.items():
        names = [sorted(re.findall(r"\{\w+\}", one or "")) for one in patterns]
        bench.expect(len(patterns) == 4 and all(one and one.strip() == one for one in patterns), f"{key}: {patterns}")
        bench.expect(all(one == names[0] for one in names), f"{key}: {names}")
        bench.expect(key in same or patterns[0] not in patterns[1:], f"{key}: English in another language")
    code = "".join(file.read_text() for file in PAGE.glob("*.js") if file.name != "strings.js")
    used = set(re.findall(r'["`]([a-z][A-Za-z]+(?:\.[A-Za-z]+)+)["`]', code)) & set(table)
    made = [re.escape(one).replace(r"\$\{", "${").replace(r"\}", "}") for one in re.findall(r"`([a-z][\w.]*\$\{[^`]*)`", code)]
    made = [re.compile(re.sub(r"\$\{.*?\}", r"[\\w.]+", one) + "$") for one in made]
    unused = [key for key in table if key not in used and not any(one.match(key) for one in made) and f'"{key}"' not in code]
    bench.expect(not unused, f"not used: {unused}")

    # A switch keeps what is there; the language that the host names yields to the customer's.
    host.event("host.locale", locale="fr-FR")
    await page.until("document.documentElement.lang === 'fr' && document.querySelector('h1').textContent === 'Bienvenue'")
    await to_key(page)
    await fill(page, number="L898902C3")
    await page.click("language.de")
    await page.until("document.documentElement.lang === 'de'")
    bench.expect(await page.eval("document.getElementById('field-number').value") == "L898902C3", "typed text is gone")
    bench.expect(await page.eval("document.activeElement.dataset.action") == "language.de", "the focus moved")
    host.event("host.locale", locale="es")
    await fill(page, birth="12 08 1974", expiry="15 04 2012")
    later = host.on["nfc.read"] = Later()
    await page.click("key.submit")
    await later.is_asked()
    bench.expect(await page.eval("document.querySelector('h1').textContent") == table["hold.present.title"][1], "not German")
    for locale, index in [("es", 3), ("fr", 2), ("en", 0)]:
        await page.click(f"language.{locale}")
        title = await page.eval("document.querySelector('h1').textContent")
        bench.expect(title == table["hold.present.title"][index], f"{locale}: {title}")


async def sources(bench):
    """What the files say: size, nothing that makes code of text or keeps data, and pictures that show what there is."""
    old = set((PICTURES / "made-of.txt").read_text().splitlines()) ^ set(made_of().splitlines())
    bench.expect(not old, f"page_judge.py --documentation makes the pictures anew; they show an older {sorted(old)}")
    shown = {f"{name}-{size}.webp" for name in PICTURED for size in SIZES}
    bench.expect({file.name for file in PICTURES.glob("*.webp")} == shown, "other pictures than README.md shows")
    files = [one for one in PAGE.iterdir() if one.is_file()]
    later = [one for one in files if one.name in LATER]
    page_size = sum(len(one.read_bytes()) for one in files if one not in later)
    module = len((MODULE / "kiosk-bridge.js").read_bytes())
    sizes = ", ".join(f"{one.name} {len(one.read_bytes())}" for one in later)
    bench.notes.append(f"the page has {page_size} bytes, with the module {page_size + module}; later {sizes}")
    bench.expect(page_size < 100_000 and page_size + module < 100 * 1024, "too large")
    bench.expect(sum(len(one.read_bytes()) for one in later) < 40 * 1024, "too large what is fetched later")
    for file in [*files, MODULE / "kiosk-bridge.js"]:
        for word in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function", "localStorage",
                     "sessionStorage", "indexedDB", "console.", "document.cookie", "https://", "style="]:
            bench.expect(word not in file.read_text(), f"{file.name}: {word}")
    style = (PAGE / "style.css").read_text()
    colors = dict(re.findall(r"--(\w+): #([0-9a-f]{6});", style))

    def luminance(color):
        # WCAG 2.1, relative luminance
        parts = [int(color[at:at + 2], 16) / 255 for at in (0, 2, 4)]
        parts = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for color, least in [("line", 3), ("main", 3), ("ink", 4.5), ("soft", 4.5)]:
        for ground in ["paper", "card", "tint"]:
            light, dark = luminance(colors[ground]), luminance(colors[color])
            ratio = (light + 0.05) / (dark + 0.05)
            bench.expect(ratio >= least, f"{color} on {ground}: {ratio:.2f}")
    physical = re.findall(r"(?:^|[;{ ])((?:margin|padding|border)-(?:left|right|top|bottom)|(?:left|right|width|height|text-align): ?(?:left|right)?)[^-]", style)
    physical = [one for one in physical if not one.startswith("text-align")]
    bench.expect(not physical, f"physical directions: {physical}")


async def speed(bench):
    """The time until the first view, with a connection: printed, as tests share their machine, and the requests for it."""
    host = await bench.host()
    times = []
    for _ in range(3):
        before = host.requests
        page = await bench.page(host)
        times.append(await page.until("globalThis.firstView"))
        asked = host.requests - before
        bench.expect(asked <= REQUESTS, f"{asked} requests before the first view")
    early = host.paths & {f"/{name}" for name in LATER}
    bench.expect(not early, f"fetched before somebody needs it: {early}")
    bench.notes.append(f"first view after {', '.join(f'{one:.0f}' for one in times)} ms, {asked} requests")


async def customers(bench, count=100):
    """Neither heap nor nodes grow with two hundred customers: half leave a page that is loaded anew, half stay."""
    host = await bench.host()
    page = await bench.page(host)
    await page.view("launcher")

    async def measure():
        await page.call("HeapProfiler.collectGarbage")
        heap = (await page.call("Runtime.getHeapUsage"))["usedSize"]
        counters = await page.call("Memory.getDOMCounters")
        return heap, counters["nodes"], counters["jsEventListeners"], counters["documents"]

    # A customer, as fast as the host answers.
    customer = """(async () => {
      const press = async (action) => {
        const end = Date.now() + 20000;
        for (;;) {
          const control = document.querySelector(`[data-action="${action}"]`);
          if (control) return control.click();
          if (Date.now() > end) throw new Error(action);
          await new Promise((done) => setTimeout(done));
        }
      };
      document.body.dataset.old = '';
      for (const action of ['journey.payment', 'order.pay', 'action.finish']) await press(action);
    })()"""
    start, at = time.monotonic(), {}
    for number in range(1, count + 1):
        await page.eval(customer)
        await page.eval("document.querySelector('[data-action=\"action.restart\"]').click()")
        await page.until("document.body && !('old' in document.body.dataset)"
                         " && document.querySelector('main')?.dataset.view === 'launcher'")
        if number in (20, count):
            at[number] = await measure()
    (heap, nodes, listeners, documents_), last = at[20], at[count]
    bench.notes.append(f"{count} customers in {time.monotonic() - start:.1f} s: heap {heap} to {last[0]} bytes, "
                       f"nodes {nodes} to {last[1]}, listeners {listeners} to {last[2]}, documents {documents_} to {last[3]}")
    bench.expect(last[0] < heap * 1.15 + 100_000, "the heap grows")
    bench.expect(last[1] < nodes * 1.5 + 200 and last[3] <= documents_ + 2, "the nodes grow")
    # And without a reload: a customer who stays.
    await page.call("HeapProfiler.collectGarbage")
    for number in range(101):
        await page.eval("document.querySelector('[data-action=\"journey.passport\"]').click()")
        await page.view("key")
        await page.eval("document.querySelector('[data-action=\"action.cancel\"]').click()")
        if number in (20, 100):
            at[-number] = await measure()
    bench.notes.append(f"without a reload: {at[-20]} to {at[-100]}")
    bench.expect(at[-100][0] < at[-20][0] * 1.1 + 100_000, "the heap grows without a reload")


async def idle(bench):
    """Who has gone: a warning by two senses that can be extended, then a page as new; never while a card is read."""
    host = await bench.host()
    page = await bench.page(host)
    await page.view("launcher")

    def later_by(seconds):
        return page.eval(f"document.body.dataset.old = ''; skew += {seconds * 1000}; 0")

    async def is_new():
        await page.until("document.body && !('old' in document.body.dataset)")
        await page.view("launcher")

    async def stays(what):
        # The watch has looked.
        ticks = await page.eval("ticks")
        await page.until(f"ticks > {ticks} + 1 || !('old' in document.body.dataset)")
        bench.expect(await page.eval("'old' in document.body.dataset && !document.getElementById('idle').open"), what)

    await later_by(1000)
    await stays("an untouched page is loaded anew")
    await to_key(page)
    await fill(page, number="L898902C3")
    await later_by(38)
    await stays("a warning before 40 s")
    # As often as the customer likes; at least ten times (WCAG 2.2.1).
    for number in range(11):
        await later_by(41 if number else 3)
        await page.until("document.getElementById('idle').open")
        if number == 0:
            bench.expect("attention" in await page.eval("sounds"), "no sound")
            words = await page.eval("document.getElementById('idle').innerText")
            bench.expect(re.search(r"in \d+ seconds", words), words)
            bench.faults += await page.eval(INSPECT)
            bench.expect(await page.eval("document.activeElement.dataset.action") == "idle.extend", "the focus is elsewhere")
        await page.key("Enter" if number % 2 else "Escape")
        await page.until("!document.getElementById('idle').open")
    bench.expect(await page.eval("document.getElementById('field-number').value") == "L898902C3", "typed text is gone")
    await later_by(41)
    await page.until("document.getElementById('idle').open")
    await later_by(20)
    await is_new()
    bench.expect(host.last("journey.cancel") == {"reason": "idle"}, "the host was not told")
    bench.expect("L898902C3" not in await page.eval("document.documentElement.outerHTML"), "something stays")

    # A language that was chosen is reset, too.
    await page.click("language.de")
    await later_by(61)
    await is_new()
    bench.expect(await page.eval("document.documentElement.lang") == "en", "the language stays")

    # Never while a card is read, or a bank is asked; a payment that nobody makes is canceled.
    later = await tap(host, page)
    for state in ["reading", "removeCard", "processing"]:
        host.state(state)
        await page.until(f"document.querySelector('main').dataset.state === '{state}'")
        await later_by(1000)
        await stays(f"the time ran during {state}")
    host.state("presentCard")
    await page.until("document.querySelector('main').dataset.state === 'presentCard'")
    await later_by(61)
    await is_new()
    bench.expect(host.count("payment.cancel") == 1, "the payment goes on")
    later.give(None)


GROUPS = {"once": once, "glance": glance, "pictures": pictures, "documentation": documentation, "write": write, "sources": sources, "speed": speed, "texts": texts, "views": views,
          "pseudo": pseudo, "enlarged": enlarged, "keyboard": keyboard, "payments": payments, "documents": documents,
          "service": service, "bridge": bridge, "idle": idle, "customers": customers}
CHECKS = [name for name in GROUPS if name not in ("once", "glance", "pictures", "documentation", "write")]
CHECKOUT = {"checkout-views": checkout_views, "checkout-form": checkout_form, "checkout-ways": checkout_ways,
            "checkout-code": checkout_code, "checkout-states": checkout_states}
GROUPS |= CHECKOUT
# What is measured runs alone; of the others one of each lane at a time.
ALONE, LANES = ["sources", "once", "speed"], [["views", "pseudo", "enlarged", "keyboard", "texts"], ["customers", "documents"],
                                      ["bridge", "idle", "payments", "service"], ["glance"],
                                      ["checkout-views"], ["checkout-form", "checkout-ways", "checkout-code", "checkout-states"]]

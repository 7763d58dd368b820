"""What the page's checkout does with what customers do, against a host that tells what a test says."""
import tempfile
from pathlib import Path

from page_checkout import (CHALLENGE, CODE, FAILURE, FILLED, LOADING, MANY, METHODS, NUMBER, PROCESSING, SPACED, SUCCESS, TAPS,
                           UNCODED, UNFETCHED, UNKNOWN, at, begin, card, challenge, offer, press, selection, state, tap, tell)
from page_mock import Refusal
from page_tour import Later, finish, fresh

CB = [{"id": "visa", "name": "Visa"}, {"id": "cartes-bancaires", "name": "Cartes Bancaires"}]


def value(name):
    return f"document.getElementById('checkout-{name}')?.value"


async def shown(bench, query="", **options):
    host = await bench.host()
    offer(host)
    page = await bench.page(host, query, **options)
    return host, page


async def to_card(host, page):
    await begin(host, page)
    await press(host, page, "method.card", "checkout.select")
    tell(host, card())
    await page.until(at("card"))


async def checkout_form(bench):
    """What is typed stays the customer's: the cursor, the text, the language; a secret is never written into a field."""
    host, page = await shown(bench)
    await to_card(host, page)
    bench.expect(await page.eval("document.activeElement.id") == "heading", "the focus is not on the new view's heading")
    hints = await page.eval("""[...document.querySelectorAll('main input')].map((e) => [e.autocomplete, e.inputMode, e.ariaRequired])""")
    bench.expect(hints == [["cc-number", "numeric", "true"], ["cc-exp", "text", "true"], ["cc-csc", "numeric", "true"],
                           ["country", "text", "true"], ["postal-code", "text", "true"]], hints)

    # A number in the middle of which a digit is missing: states arrive, and the cursor stays where it is.
    await page.click("#checkout-CARD_NUMBER")
    await page.type(NUMBER[:6] + NUMBER[7:])
    await host.asked("checkout.update", value=NUMBER[:6] + NUMBER[7:])
    await page.eval("document.getElementById('checkout-CARD_NUMBER').setSelectionRange(6, 6); globalThis.input = document.activeElement")
    tell(host, card({"CARD_NUMBER": "*" * 15}, network=CB[0]))
    await page.until("document.querySelector('.network')")
    await page.type(NUMBER[6])
    for stars in range(3):
        tell(host, card({"CARD_NUMBER": "*" * 16}, network=CB[stars % 2], networks=CB, locale="en"))
        await page.until(f"document.getElementById('network-{CB[stars % 2]['id']}')?.checked")
    kept = await page.eval("[input === document.activeElement, input.isConnected, input.selectionStart, input.value === '%s']" % NUMBER)
    bench.expect(kept == [True, True, 7, True], f"the cursor: {kept}")
    await host.asked("checkout.update", field="CARD_NUMBER", value=NUMBER)

    # One of a field's texts at a time, and the last of them; a host that takes its time gets no more.
    later = host.on["checkout.update"] = Later()
    await page.click("#checkout-EXPIRY_DATE")
    for letter in "12/49":
        await page.type(letter)
    await later.is_asked()
    before = host.count("checkout.update")
    del host.on["checkout.update"]
    host.on["checkout.update"] = {}
    later.give({})
    await host.asked("checkout.update", field="EXPIRY_DATE", value="12/49")
    bench.expect(host.count("checkout.update") - before == 1, "each letter is a request")

    # Left: the mask is below the field, which keeps what was typed, and is its description.
    await page.click("#checkout-CVV")
    await page.type(CODE)
    await host.asked("checkout.leave", field="CARD_NUMBER")
    tell(host, card(FILLED, network=CB[1], networks=CB))
    await page.until("document.getElementById('checkout-CARD_NUMBER-mask')")
    bench.expect(await page.eval(value("CARD_NUMBER")) == NUMBER, "the customer's text is gone")
    bench.expect(await page.eval(value("CVV")) == CODE, "the code is gone")
    described = await page.eval("document.getElementById('checkout-CARD_NUMBER').ariaDescribedByElements.map((e) => e.textContent)")
    bench.expect(described == ["Cartes Bancaires", "424242******4242"], described)
    await page.click("#checkout-POSTAL_CODE")
    covered = await page.eval("""['CARD_NUMBER', 'CVV', 'POSTAL_CODE'].map((one) =>
        getComputedStyle(document.getElementById(`checkout-${one}`)).webkitTextSecurity)""")
    bench.expect(covered == ["disc", "disc", "none"], f"bystanders see it: {covered}")

    # A choice of the network is asked for, and shown when the service has taken it.
    await page.click("#network-visa")
    await host.asked("checkout.chooseNetwork", network="visa")
    tell(host, card(FILLED, network=CB[0], networks=CB))
    await page.until("document.getElementById('network-visa').checked && document.querySelector('.network').textContent === 'Visa'")

    # Errors: said once, at their field, described by it; gone with it.
    await page.eval("document.getElementById('status').textContent = ''")
    wrong = {"POSTAL_CODE": "This postal code is not valid."}
    tell(host, card(FILLED, wrong, network=CB[0], networks=CB))
    await page.until("document.getElementById('status').textContent === 'This postal code is not valid.'")
    bench.expect(await page.eval("document.getElementById('checkout-POSTAL_CODE').ariaDescribedByElements[0].textContent") ==
                 wrong["POSTAL_CODE"], "the error does not describe its field")
    await page.eval("document.getElementById('status').textContent = ''")
    tell(host, card({**FILLED, "CVV": ""}, wrong, network=CB[0], networks=CB, ready=True))
    await page.until("!document.querySelector('[data-action=\"checkout.submit\"]').ariaDisabled")
    bench.expect(await page.eval("document.getElementById('status').textContent") == "", "an error is said twice")
    # To headphones as well, by its key.
    host.event("host.headphones", connected=True)
    tell(host, card(FILLED, {**wrong, "CVV": "This security code is not valid."}, network=CB[0], networks=CB))
    await host.asked("speech.say", key="error.CVV")
    host.event("host.headphones", connected=False)
    # A country without postal codes, and back: the others stay.
    tell(host, card(FILLED, country="HK"))
    await page.until("!document.getElementById('checkout-POSTAL_CODE')")
    bench.expect(await page.eval("input.isConnected") and await page.eval(value("CARD_NUMBER")) == NUMBER, "a field was made anew")
    tell(host, card(FILLED))
    await page.until("document.getElementById('checkout-POSTAL_CODE')")

    # Another language in the middle: the labels change, and nothing that was typed.
    await page.click("#checkout-EXPIRY_DATE")
    await page.click("language.de")
    await host.asked("checkout.locale", locale="de")
    tell(host, card(FILLED, locale="de"))
    await page.until("document.querySelector('label[for=checkout-CARD_NUMBER]').textContent === 'Kartennummer'")
    bench.expect(await page.eval(value("CARD_NUMBER")) == NUMBER and await page.eval(value("EXPIRY_DATE")) == "12/49", "typed text is gone")
    bench.expect(await page.eval("document.activeElement.dataset.action") == "language.de", "the focus moved")
    bench.expect(await page.eval("document.querySelector('.keypad').ariaLabel") == "Tasten für: Gültig bis", "keys in another language")
    await page.click("language.en")
    tell(host, card(FILLED))
    await page.until("document.querySelector('label[for=checkout-CARD_NUMBER]').textContent === 'Card number'")

    # Left and shown again: empty fields for secrets, with the mask below; the others as the service has them.
    tell(host, selection())
    await page.until(at("selection.ready"))
    bench.expect(await page.eval("input.value") == "", "a field that is gone keeps the number")
    tell(host, card(FILLED, network=CB[0], ready=True))
    await page.until(at("card"))
    values = await page.eval("Object.fromEntries([...document.querySelectorAll('main input')].map((e) => [e.id.slice(9), e.value]))")
    bench.expect(values == {"CARD_NUMBER": "", "EXPIRY_DATE": "12/49", "CVV": "", "COUNTRY_CODE": "DE", "POSTAL_CODE": "10115"}, values)
    bench.expect(await page.eval("document.getElementById('checkout-CARD_NUMBER-mask').textContent") == "424242******4242", "no mask")

    # Pasted with separators, and filled in by the browser at once, without a key: as they are; the rest is the service's.
    await page.click("#checkout-CARD_NUMBER")
    await page.type(SPACED)
    await host.asked("checkout.update", field="CARD_NUMBER", value=SPACED)
    await page.eval("""for (const [name, text] of Object.entries({ CARD_NUMBER: '%s', EXPIRY_DATE: '1/50', CVV: '%s' })) {
        const field = document.getElementById(`checkout-${name}`);
        field.value = text;
        for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, { bubbles: true }));
    }""" % (NUMBER, CODE))
    for name, text in [("CARD_NUMBER", NUMBER), ("EXPIRY_DATE", "1/50"), ("CVV", CODE)]:
        await host.asked("checkout.update", field=name, value=text)

    # Keys on the screen: the focus stays in the field, and nothing is left by them.
    await page.click("#checkout-CVV")
    await page.eval("document.getElementById('checkout-CVV').select()")
    left = len([one for name, one in host.seen if name == "checkout.leave" and one["field"] == "CVV"])
    for digit in CODE:
        await page.click(f'[data-key="{digit}"]')
    await host.asked("checkout.update", count=2, field="CVV", value=CODE)
    bench.expect(await page.eval("document.activeElement.id") == "checkout-CVV", "a key takes the focus")
    bench.expect(len([one for name, one in host.seen if name == "checkout.leave" and one["field"] == "CVV"]) == left, "a key leaves")
    await page.click("#checkout-POSTAL_CODE")
    bench.expect(await page.eval("!!document.querySelector('.key-space')"), "no keys for texts")

    # Keys alone: from the heading through the fields, and Enter pays; twice is harmless.
    await page.eval("document.getElementById('heading').focus()")
    for name in ["CARD_NUMBER", "EXPIRY_DATE", "CVV", "COUNTRY_CODE"]:
        await page.key("Tab")
        bench.expect(await page.eval("document.activeElement.id") == f"checkout-{name}", f"the order of the focus: {name}")
    later = host.on["checkout.submit"] = Later()
    page.frames = []
    await page.key("Enter")
    await page.key("Enter")
    await later.is_asked()
    tell(host, card(FILLED, loading=True))
    await page.until("document.querySelector('[data-action=\"checkout.submit\"]').ariaDisabled")
    await page.key("Enter")
    host.on["checkout.submit"] = {}
    later.give({})
    tell(host, PROCESSING)
    await page.until(at("processing"))
    await page.settled()
    submits = [text for is_sent, text in page.frames if is_sent and '"checkout.submit"' in text]
    bench.expect(1 <= len(submits) <= 2, f"a button that is loading pays again: {len(submits)} times")
    everything = await page.eval("document.documentElement.outerHTML + [...document.querySelectorAll('input')].map((e) => e.value)")
    bench.expect(NUMBER not in everything and CODE not in everything, "the card is in the page after it was paid with")
    # What the field's own rules say, the page does not: a form that is not complete is asked for its errors.
    tell(host, FAILURE)
    await page.until(at("failure"))
    await press(host, page, "checkout.retry", "checkout.retry")
    tell(host, card())
    await page.until(at("card"))
    asked = host.count("checkout.leave")
    await page.click("checkout.submit")
    await host.asked("checkout.leave", asked + 5)
    tell(host, card(errors={"EXPIRY_DATE": "Please fill in this field.", "CVV": "Please fill in this field."}))
    await page.until("document.activeElement.id === 'checkout-EXPIRY_DATE'", "the focus on the first field with an error")


async def checkout_ways(bench):
    """The ways through the checkout: what comes and goes, failures, and a page that is left, lost and loaded anew."""
    host = await bench.host()
    page = await bench.page(host)
    await page.view("launcher")
    bench.expect(await page.eval("!document.querySelector('[data-action=\"journey.checkout\"]')"), "a checkout that is not there")
    offer(host)
    host.event("host.capabilitiesChanged", capabilities=host.capabilities)
    await page.until("document.querySelector('[data-action=\"journey.checkout\"]')")
    await begin(host, page)

    # To headphones: what the service names, with the amounts and the language, and nothing else.
    host.event("host.headphones", connected=True)
    await host.asked("speech.say", key="checkout.total")
    said = [(one["key"], one["values"]) for name, one in host.seen if name == "speech.say"]
    bench.expect(said == [("methodSelection.title", {"locale": "en"}),
                          ("checkout.total", {"amount": "€12.34", "locale": "en"})], said)
    host.event("host.headphones", connected=False)

    # The reader is unplugged, and plugged in: its method goes and comes, said in words; the focus stays.
    await page.eval("document.querySelector('[data-action=\"method.card\"]').focus()")
    tell(host, selection(METHODS[1:]))
    await page.until("!document.querySelector('[data-action=\"method.tap\"]')")
    bench.expect(await page.eval("document.activeElement.dataset.action") == "method.card", "the focus moved")
    bench.expect(await page.eval("document.getElementById('status').textContent") == "2 ways to pay", "not said")
    tell(host, selection())
    await page.until("document.querySelector('[data-action=\"method.tap\"]')")
    bench.expect(await page.eval("[...document.querySelectorAll('.journey')].map((e) => e.dataset.action)") ==
                 ["method.tap", "method.card", "method.voucher"], "another order")
    # The one that had the focus is unplugged.
    await page.eval("document.querySelector('[data-action=\"method.tap\"]').focus()")
    tell(host, selection(METHODS[1:]))
    await page.until("!document.querySelector('[data-action=\"method.tap\"]')")
    await page.key("Tab")
    bench.expect(await page.eval("document.activeElement !== document.body"), "the focus is lost")

    # A search.
    tell(host, selection(MANY))
    await page.click("#checkout-search")
    await page.type("nor")
    await host.asked("checkout.search", query="nor")
    tell(host, selection(MANY, "nor"))
    await page.until("document.querySelectorAll('.journey').length === 1")
    bench.expect(await page.eval("document.activeElement.id + document.activeElement.value") == "checkout-searchnor", "the search")

    # Methods that could not be fetched are fetched again; then the customer goes.
    tell(host, UNFETCHED)
    await page.until(at("selection.error"))
    await press(host, page, "checkout.retry", "checkout.retry")
    tell(host, LOADING)
    await page.until(at("selection.loading"))
    tell(host, selection())
    await page.until(at("selection.ready"))
    await press(host, page, "checkout.cancel", "checkout.cancel")
    tell(host, state("start"))
    await page.view("launcher")
    tell(host, selection())
    await page.settled()
    bench.expect(await page.eval("document.querySelector('main').dataset.view") == "launcher", "a checkout that is over comes back")

    # Tap: each message in words, and no way back while a card is read.
    await begin(host, page)
    await page.click("method.tap")
    for name, text in TAPS.items():
        await page.eval("sounds.length = 0")
        tell(host, tap(name, text))
        await page.until(at(f"tap.{name}"))
        spoken = await page.eval("document.getElementById('status').textContent + document.getElementById('alert').textContent")
        bench.expect(spoken.startswith(text), f"{name}: {spoken}")
        backs = await page.eval("document.querySelectorAll('main [data-back]').length")
        bench.expect(backs == (0 if name in ("reading", "removeCard", "processing") else 2), f"{name}: {backs} ways back")
    bench.expect(await page.eval("document.activeElement.id") == "heading", "the focus is not on the heading")
    await page.key("Escape")
    await host.asked("checkout.back")

    # Declined, then once more; not known; paid: a signal each, and the journey is complete.
    for told, name, sound in [(FAILURE, "failure", "failure"), (UNKNOWN, "unknown", "failure"), (SUCCESS, "success", "success")]:
        await page.eval("sounds.length = 0")
        tell(host, told)
        await page.until(at(name))
        bench.expect(await page.eval("sounds") == [sound], f"{name}: {await page.eval('sounds')}")
    tell(host, SUCCESS)
    bench.expect(host.last("journey.complete") == {"status": "success", "referenceId": SUCCESS["order"]}, "not complete")
    host.on["receipt.print"] = Refusal("UNSUPPORTED", False, "unsupported")
    await page.click("receipt.print")
    await page.until("/could not be printed/.test(document.body.innerText)")
    del host.on["receipt.print"]
    await page.click("receipt.print")
    await page.until("/being printed/.test(document.body.innerText)")
    cancels = host.count("checkout.cancel")
    await finish(page)
    await host.asked("checkout.cancel", cancels + 1)
    bench.expect(host.count("journey.complete") == 1, "complete twice")
    await fresh(page)

    # An order that is paid elsewhere by now is not paid: said in words.
    await to_card(host, page)
    host.on["checkout.submit"] = Refusal("BUSY")
    tell(host, card(FILLED, ready=True))
    await page.click("checkout.submit")
    await page.until("/still busy/.test(document.querySelector('main').innerText)")
    host.on["checkout.submit"] = {}

    # The link is lost with a form: it is over.  During a payment: what the snapshot says, or that nobody knows.
    for told, known, end in [(card(), None, "error"), (card(), card(), "error"), (PROCESSING, SUCCESS, "success"),
                             (PROCESSING, FAILURE, "failure"), (CHALLENGE, PROCESSING, "processing"), (PROCESSING, None, "unknown"),
                             (tap("reading", TAPS["reading"]), None, "unknown"), (SUCCESS, None, "success")]:
        tell(host, told)
        await page.until(at(told["route"] if told["route"] != "method" else "tap.reading" if "tap" in told else "card"))
        host.down, host.checkout = True, known
        host.drop()
        await page.until("!document.getElementById('banner').hidden")
        host.down = False
        await page.until("document.getElementById('banner').hidden")
        await page.until(at(end) if end != "error" else "document.querySelector('main').dataset.view === 'error'", f"{told['route']} to {end}")
        host.checkout = None
        if end == "error":
            await press(host, page, "action.retry", "checkout.start")
            tell(host, selection())
            await page.until(at("selection.ready"))
        elif end == "unknown":
            bench.expect(await page.eval("!document.querySelector('[data-action=\"action.retry\"]')"), "a way to pay again")
            await finish(page)
            await fresh(page)
            await begin(host, page)
    await finish(page)
    await fresh(page)

    # Loaded anew, back, forward: the route of the snapshot.  A form that is gone is not there again.
    await begin(host, page)
    for known, seen in [(PROCESSING, "processing"), (CHALLENGE, "challenge"), (SUCCESS, "success"), (None, ""), (state("start"), "")]:
        host.checkout = known
        await page.eval("document.body.dataset.old = ''")
        await page.call("Page.reload")
        await page.until("document.body && !('old' in document.body.dataset)")
        await page.until(at(seen) if seen else "document.querySelector('main')?.dataset.view === 'launcher'", f"{seen} after a reload")
    host.checkout = PROCESSING
    await page.call("Page.navigate", url="about:blank")
    await page.until("location.href === 'about:blank'")
    for step in ["back()", "forward()", "back()"]:
        await page.eval(f"setTimeout(() => history.{step})")
        await page.until("location.href === 'about:blank'" if step == "forward()" else at("processing"), step)
    bench.expect(host.count("checkout.submit") == 1, "a page that comes back pays")

    # An address that opens it: once.
    host.checkout = None
    other = await bench.page(host, "?checkout&locale=de")
    await page.close()
    bench.pages.remove(page)
    asked = await host.asked("checkout.start", locale="de")
    tell(host, selection())
    await other.until(at("selection.ready"))
    bench.expect(await other.eval("location.search") == "?locale=de", "the address would open it again")


async def looks(page, modules):
    """What is wrong with the code as it is drawn: its quiet zone, its colors."""
    from PIL import Image

    box = await page.eval("(({ x, y, width }) => [x, y, width])(document.querySelector('.code').getBoundingClientRect())")
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        await page.screenshot(Path(file.name))
        picture = Image.open(file.name).convert("RGB")
        module = box[2] / (len(modules) + 8)

        def color(column, row):
            """In the middle of a module."""
            return picture.getpixel((int(box[0] + (column + 4.5) * module), int(box[1] + (row + 4.5) * module)))

        size = range(-4, len(modules) + 4)
        dark = {(x, y) for y, row in enumerate(modules) for x, one in enumerate(row) if one == "1"}
        return [(x, y) for x in size for y in size if color(x, y) != ((0, 0, 0) if (x, y) in dark else (255, 255, 255))]


async def checkout_code(bench):
    """A phone's camera reads the bank's address off the screen, whatever the display's settings; the customer can check it."""
    settings = [("portrait", {}, (1080, 1920)), ("landscape", {}, (1920, 1080)),
                ("small", {"forced_colors": "active", "prefers_color_scheme": "dark"}, (540, 960)),
                ("dark", {"prefers_color_scheme": "dark", "prefers_contrast": "more"}, (1080, 1920))]
    # As long as an address of a payment service may be.
    long = "https://bank.example/".ljust(2048, "x")
    for name, media, size in settings:
        host, page = await shown(bench, size=size, **media)
        await begin(host, page)
        for address in [CHALLENGE["page"], long] if size != (540, 960) else [CHALLENGE["page"]]:
            told = challenge(address)
            tell(host, told)
            await page.until(f"document.querySelector('.code')?.viewBox.baseVal.width === {len(told['code']['modules']) + 8}")
            box = await page.eval("(({ top, bottom, width, height }) => [top, bottom, width, height])"
                                  "(document.querySelector('.code').getBoundingClientRect())")
            bench.expect(0 <= box[0] and box[1] <= size[1], f"{name}: not all of the code is on the screen: {box}")
            # 33 mm; a pixel of CSS is the 96th part of an inch.
            bench.expect(box[2] == box[3] >= 33 / 25.4 * 96, f"{name}: the code is too small: {box}")
            read = await page.scan()
            bench.expect(read == [address], f"{name}: read {read}")
            if address != long:
                wrong = await looks(page, told["code"]["modules"])
                bench.expect(not wrong, f"{name}: modules of another color: {wrong[:8]}")
        bench.expect(await page.eval("!document.querySelector('main a')"), f"{name}: a link that the kiosk cannot follow")

    # Where it leads, in words: whatever comes before the host, and no code of what is not a page of the web.
    for address, host_name in [("https://bank.example@other.example/", "other.example"),
                               ("https://bank.example:8443/?https://other.example", "bank.example:8443"),
                               ("https://b\u0430nk.example/", "xn--bnk-6cd.example"),
                               ("https://" + "bank.example." * 19 + "other.example/", "bank.example." * 19 + "other.example")]:
        tell(host, challenge(address))
        await page.until(f"document.querySelector('.address')?.textContent === '{host_name}'", host_name)
    await page.resize(320, 640)
    bench.expect(await page.eval("document.documentElement.scrollWidth <= 320"), "a long name of a host is cut off")
    for address in ["javascript:alert(1)", "data:text/html,pay", "intent://pay#Intent;end", "bank.example/challenges/1", ""]:
        tell(host, challenge(address or "x") | {"page": address})
        await page.until("!document.querySelector('.address, .code, main a')", f"nothing of {address}")
        tell(host, UNCODED)
        await page.until("document.querySelector('main a')?.href === 'https://bank.example/challenges/1'", "a link without a code")


async def checkout_states(bench):
    """A state changes what differs: no element is made anew by a keystroke.  The time is printed, as tests share their machine."""
    host, page = await shown(bench)
    await to_card(host, page)
    await page.eval("""globalThis.changes = [];
        new MutationObserver((records) => changes.push(...records.map(({ type }) => type)))
          .observe(document.querySelector('main'), { subtree: true, childList: true, attributes: true, characterData: true });
        globalThis.times = [];
        const parse = JSON.parse;
        let received = 0;
        JSON.parse = (text) => (received = realTime(), parse(text));
        new MutationObserver(() => times.push(realTime() - received))
          .observe(document.querySelector('main'), { subtree: true, childList: true, attributes: true, characterData: true });""")
    count = 200
    tell(host, card(FILLED, network=CB[0]))
    await page.until("document.querySelector('.network')")
    await page.eval("changes.length = times.length = 0")
    for number in range(count):
        tell(host, card({**FILLED, "EXPIRY_DATE": f"{number}"}, network=CB[0], ready=number % 2 == 0))
    tell(host, card(FILLED, network=CB[1]))
    await page.until("document.querySelector('.network').textContent === 'Cartes Bancaires'")
    made = await page.eval("changes.filter((one) => one === 'childList').length")
    rest = await page.eval("changes.length")
    bench.expect(made == 0, f"{made} elements were made anew")
    # The button's attribute, and the state of the view.
    bench.expect(rest <= 4 * count, f"{rest} changes for {count} states")
    # From a message of the host to the elements, both within the page.
    median, last = await page.eval("(() => { times.sort((a, b) => a - b); return [times[times.length / 2 | 0], times.at(-3)]; })()")
    bench.notes.append(f"{rest} changes for {count} states; from a state to the page {median:.2f} ms, p99 {last:.2f} ms")

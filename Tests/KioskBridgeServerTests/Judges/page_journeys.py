"""What the page does: journeys end to end, also where the host fails or vanishes."""

from page_mock import ORDER, Refusal, capabilities, document, euro, paid
from page_tour import FIELDS, TAPS, Later, fill, finish, fresh, home, tap, to_key

# Files of the page, the module, the connection: what a slower machine does not change.
REQUESTS = 11
# The machine-readable zones of ICAO Doc 9303-4 and 9303-5, appendix A.  # TEST
TD3 = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"
TD1 = "I<UTOD231458907<<<<<<<<<<<<<<<\n7408122F1204159UTO<<<<<<<<<<<6\nERIKSSON<<ANNA<MARIA<<<<<<<<<<"


async def once(bench):
    """A customer: an order is paid, and the next one finds nothing of it.  Then the link is lost during a tap."""
    host = await bench.host()
    page = await bench.page(host)
    await page.view("launcher")
    bench.expect(host.requests <= REQUESTS, f"{host.requests} requests before the first view")
    later = await tap(host, page, hurried=True)
    for state in ["presentCard", "reading", "processing"]:
        host.state(state)
        await page.until(f"document.querySelector('main').dataset.state === '{state}'")
    host.state("approved")
    later.give(paid())
    await page.view("paid")
    bench.expect(await page.eval("sounds.filter((one) => one === 'success').length") == 1, "not one signal of success")
    await page.click("receipt.print")
    await page.until("/being printed/.test(document.body.innerText)")
    bench.expect(host.last("journey.complete") == {"status": "success", "referenceId": ORDER["id"]}, "not complete")
    await finish(page)
    bench.expect("12.34" not in await page.eval("document.documentElement.outerHTML"), "the order stays")
    await fresh(page)
    bench.expect(host.count("payment.start") == 1 and host.count("payment.cancel") == 0, "a hurried finger did more than pay")
    await tap(host, page)
    host.down, host.payment = True, {"order": ORDER["id"], "state": "approved", "outcome": "approved"}
    host.drop()
    await page.view("payLost")
    bench.expect("0" == await page.eval("String(document.querySelectorAll('main button').length)"), "a way to pay again")
    host.down = False
    await page.until("document.querySelector('main').dataset.state === 'approved'")


async def payments(bench):
    host = await bench.host()
    page = await bench.page(host)
    await page.view("launcher")

    # Approved: each state of the kernel, in words; a signal that is another one than that of failure.
    later = await tap(host, page)
    bench.expect(host.last("payment.start") == {"order": ORDER["id"]}, "the page says more than the order")
    for state in TAPS:
        host.state(state)
        await page.until(f"document.querySelector('main').dataset.state === '{state}'")
        spoken = await page.eval("document.getElementById('status').textContent + document.getElementById('alert').textContent")
        heading = await page.eval("document.querySelector('h1').textContent")
        bench.expect(spoken.startswith(heading), f"{state}: {spoken}")
        can_cancel = await page.eval("!!document.querySelector('[data-action=\"action.cancel\"]')")
        bench.expect(can_cancel == (state in ("presentCard", "seePhone", "tryAgain", "otherCard")), f"{state}: {can_cancel}")
    await page.eval("sounds.length = 0")
    host.state("approved")
    await page.view("paid")
    later.give(paid(loyalty={"member": "****4711", "saved": euro(123)}))
    await page.until("document.querySelector('.loyalty')")
    bench.expect(await page.eval("sounds") == ["success"], "not one signal of success")
    bench.expect(await page.eval("[...document.querySelectorAll('bdi')].some((e) => e.textContent === '€12.34')"), "amount")
    host.on["receipt.print"] = Refusal("UNSUPPORTED", False, "unsupported")
    await page.click("receipt.print")
    await page.until("/could not be printed/.test(document.body.innerText)")
    del host.on["receipt.print"]
    await page.click("receipt.print")
    await page.until("/being printed/.test(document.body.innerText)")
    bench.expect(host.last("receipt.print") == {"order": ORDER["id"], "locale": "en"}, "receipt")
    bench.expect(host.last("journey.complete") == {"status": "success", "referenceId": ORDER["id"]}, "not complete")
    await finish(page)
    bench.expect("12.34" not in await page.eval("document.documentElement.outerHTML"), "the order stays")
    await fresh(page)

    # Declined, tried again, and canceled too late.
    later = await tap(host, page)
    later.give(paid("declined"))
    await page.view("paid")
    bench.expect((await page.eval("sounds"))[-1] == "failure", "no signal of failure")
    later = host.on["payment.start"] = Later()
    await page.click("action.retry")
    await page.view("order")
    await page.click("order.pay")
    await later.is_asked()
    host.state("presentCard")
    host.on["payment.cancel"] = {"cancelled": False}
    await page.click("action.cancel")
    await page.until("/too late/.test(document.getElementById('status').textContent)")
    host.on["payment.cancel"] = {"cancelled": True}
    await page.click("action.cancel")
    later.give(Refusal("CANCELLED", True, "cancelled"))
    await page.until("document.querySelector('main').dataset.state === 'cancelled'")
    bench.expect(host.last("journey.complete")["status"] == "cancelled", "status of a canceled payment")
    await finish(page)
    await fresh(page)

    # The link is lost during a tap: it may have happened, until the snapshot knows better.
    for payment, end in [({"order": ORDER["id"], "state": "approved", "outcome": "approved"}, "approved"),
                         ({"order": ORDER["id"], "state": "declined", "outcome": "declined"}, "declined"),
                         ({"order": ORDER["id"], "state": "processing"}, "processing"),
                         ({"order": "another", "state": "approved", "outcome": "approved"}, "unknown"),
                         (None, "unknown")]:
        await tap(host, page)
        host.state("reading")
        await page.until("document.querySelector('main').dataset.state === 'reading'")
        host.down, host.payment = True, payment
        host.drop()
        await page.view("payLost")
        bench.expect("may have happened" in await page.eval("document.getElementById('alert').textContent"), "no alert")
        bench.expect("0" == await page.eval("String(document.querySelectorAll('main button').length)"), "a way to pay again")
        host.down = False
        await page.until(f"document.querySelector('main').dataset.state === '{end}'")
        if end == "processing":
            # Lost once more: nothing is forgotten.
            host.down = True
            host.drop()
            await page.view("payLost")
            host.down = False
            await page.until(f"document.querySelector('main').dataset.state === '{end}'")
            host.state("approved")
            await page.view("paid")
        host.payment = None
        await finish(page)
        await fresh(page)

    # A page that is loaded in the middle shows what the host says.
    host.payment = {"order": ORDER["id"], "state": "removeCard"}
    other = await bench.page(host)
    await other.until("document.querySelector('main')?.dataset.state === 'removeCard'")
    host.payment = None


async def documents(bench):
    host = await bench.host()
    page = await bench.page(host)
    await page.view("launcher")

    # The chip refuses the key: what was typed is still there.
    await to_key(page)
    host.on["nfc.read"] = Refusal("ACCESS_DENIED")
    await fill(page, **FIELDS)
    await page.click("key.submit")
    await page.view("error")
    bench.expect(host.last("nfc.read") == {"type": "document", "documentNumber": "L898902C3", "dateOfBirth": "740812",
                                           "dateOfExpiry": "120415", "dataGroups": [1, 2]}, host.last("nfc.read"))
    bench.expect("L898902C3" not in await page.eval("document.documentElement.outerHTML"), "the key is in the error view")
    await page.click("action.retry")
    await page.view("key")
    bench.expect(await page.eval("document.getElementById('field-number').value") == "L898902C3", "typed text is gone")

    # Lines with a wrong check digit, then right ones, of a passport and of a card; keys on the screen.
    await page.click("#method-mrz")
    for text, fault in [("P<UTO", "Two lines"), (TD3.replace("740812", "740813"), "check digit"),
                        (TD1.replace("D23145890", "D23145891"), "check digit")]:
        await fill(page, mrz=text)
        await page.click("key.submit")
        await page.until(f"document.querySelector('.wrong')?.textContent.includes('{fault}')")
        bench.expect(await page.eval("document.activeElement.id") == "field-mrz", "the focus is not on what is wrong")
    for text in [TD3, TD1]:
        host.on["nfc.read"] = Refusal("NOT_A_DOCUMENT")
        await fill(page, mrz=text.lower().replace("\n", " "))
        await page.click("key.submit")
        await page.view("error")
        bench.expect(host.last("nfc.read")["mrz"] == text, host.last("nfc.read"))
        await page.click("action.retry")
        await page.view("key")
    await page.click("#method-can")
    for digit in "1234567":
        await page.click(f'[data-key="{digit}"]')
    await page.click('[data-key="erase"]')
    await page.click('[data-key="8"]')
    host.on["nfc.read"] = later = Later()
    await page.click("key.submit")
    await later.is_asked()
    bench.expect(host.last("nfc.read")["can"] == "123458", host.last("nfc.read"))
    host.event("nfc.progress", request=later.correlation, step="reading", fraction=0.5)
    await page.until("document.querySelector('progress')?.value === 0.5")

    # Read: the result in words and the portrait; gone with the view.
    later.give(document("yes", "unknown"))
    await page.view("result")
    await page.until("document.querySelector('.portrait').naturalWidth === 120")
    address = await page.eval("document.querySelector('.portrait').src")
    bench.expect("was not checked" in await page.eval("document.body.innerText"), "no words about the chip")
    bench.expect("August 12, 1974" in await page.eval("document.body.innerText"), "no date in words")
    await finish(page)
    html = await page.eval("document.documentElement.outerHTML")
    bench.expect(not any(one in html for one in ["ERIKSSON", "L898902C3", "123458", "1974"]), "something of the document stays")
    gone = await page.eval(f"new Promise((d) => {{ const i = new Image(); i.onload = () => d(false);"
                           f"i.onerror = () => d(true); i.src = '{address}'; }})")
    bench.expect(gone, "the portrait stays in memory")
    bench.expect(host.last("journey.complete")["status"] == "success", "status")
    bench.expect(await page.eval("document.querySelector('.reference').textContent") ==
                 f"Reference {host.last('journey.complete')['referenceId']}", "reference")
    await fresh(page)

    # A copy is no success, whoever signed it.
    host.on["nfc.read"] = document("yes", "no")
    await to_key(page)
    await fill(page, **FIELDS)
    await page.click("key.submit")
    await page.until("document.querySelector('main').dataset.state === 'no'")
    bench.expect(host.last("journey.complete")["status"] == "rejected", "status of a copy")
    await finish(page)
    await fresh(page)

    # Each error in words, with a second try where there is one; never the service's own words.
    for code, recoverable in [("TIMEOUT", True), ("BUSY", True), ("READER_DISCONNECTED", True), ("CARD_REMOVED", True),
                              ("PERMISSION_DENIED", True), ("UNSUPPORTED", False), ("INTERNAL_ERROR", False)]:
        host.on["nfc.read"] = Refusal(code, recoverable, "unsupported" if code == "UNSUPPORTED" else "error")
        await to_key(page)
        await fill(page, **FIELDS)
        await page.click("key.submit")
        await page.view("error")
        shown = await page.eval("document.body.innerText")
        bench.expect("as the test says" not in shown and code not in shown, f"{code}: {shown}")
        bench.expect(await page.eval("!!document.querySelector('[data-action=\"action.retry\"]')") == recoverable, code)
        bench.expect(host.last("journey.error") == {"message": code}, code)
        await home(page)

    # Leaving cancels; the late answer changes nothing.
    host.on["nfc.read"] = later = Later()
    await to_key(page)
    await fill(page, **FIELDS)
    await page.click("key.submit")
    await later.is_asked()
    await page.click("action.cancel")
    await page.view("launcher")
    later.give(document())
    await host.asked("nfc.cancel")
    await page.settled()
    await page.view("launcher")
    bench.expect(host.count("nfc.cancel") == 1, "the read goes on")
    bench.expect(host.last("journey.cancel") == {"reason": "customer"}, "no reason")

    # The link is lost while a document is read.
    host.on["nfc.read"] = later = Later()
    await to_key(page)
    await fill(page, **FIELDS)
    await page.click("key.submit")
    await later.is_asked()
    host.drop()
    await page.view("error")
    bench.expect("connection was lost" in await page.eval("document.body.innerText"), "no words about the link")


async def service(bench):
    host = await bench.host()
    host.capabilities = capabilities("nfc.read")
    page = await bench.page(host)
    await page.view("launcher")

    # What is missing is named; the customer goes on or not.
    await page.click("journey.passport")
    await page.view("warning")
    bench.expect("Chip reader" in await page.eval("document.querySelector('main').innerText"), "it is not named")
    await page.click("warning.continue")
    await page.view("key")
    bench.expect(host.count("journey.started") == 1, "the host was not told")
    await page.click("action.cancel")
    # Live: plugged in.
    host.event("host.capabilitiesChanged", capabilities=capabilities("payment.start"))
    await page.until("document.querySelector('[data-capability=\"nfc.read\"].ready')"
                     " && document.querySelector('[data-capability=\"payment.start\"].missing')")

    # Out of service and back; never in the middle of a payment.
    host.event("host.outOfService", inService=False)
    await page.view("outOfService")
    host.event("host.outOfService", inService=True)
    await page.view("launcher")
    host.capabilities = capabilities()
    host.event("host.capabilitiesChanged", capabilities=host.capabilities)
    later = await tap(host, page)
    host.state("removeCard")
    host.event("host.outOfService", inService=False)
    host.event("host.background")
    await page.until("document.querySelector('main').dataset.state === 'removeCard'")
    host.event("host.foreground")
    later.give(paid())
    await page.view("paid")
    await page.click("action.finish")
    await page.view("complete")
    host.in_service = False
    await page.eval("document.body.dataset.old = ''")
    await page.click("action.restart")
    await page.until("document.body && !('old' in document.body.dataset)")
    await page.view("outOfService")
    host.in_service = True
    host.event("host.outOfService", inService=True)
    await page.view("launcher")

    # Headphones: speech begins by plugging in, in the page's language, and again on request.
    host.event("host.headphones", connected=True)
    await page.until("document.querySelector('[data-action=\"tools.again\"]')")
    await page.click("language.fr")
    await page.click("tools.again")
    await page.click("journey.passes")
    await page.view("passes")
    await host.asked("speech.say", key="passes.title")
    said = await host.asked("speech.say")
    for locale in ["en", "fr"]:
        bench.expect({"key": "launcher.title", "values": {"locale": locale}, "volume": 60} in said, said)

    async def heard(count):
        """What texts were named with from the `count`th on, once there is one."""
        return (await host.asked("speech.say", count + 1))[count:]

    # Louder up to the limit, each time with a sample; silent until it is asked for.
    for action, volume in [("louder", 80), ("louder", 100), ("louder", 100), ("quieter", 80)]:
        count = host.count("speech.say")
        await page.click(f"tools.{action}")
        bench.expect([one["volume"] for one in await heard(count)][:1] == [volume], f"{action}: not {volume}")
    await page.click("tools.pause")
    await page.until("document.querySelector('[data-action=\"tools.pause\"][aria-pressed=true]')")
    await host.asked("speech.stop")
    bench.expect(host.count("speech.stop") == 1, "the text goes on")
    count = host.count("speech.say")
    await page.click("language.de")
    bench.expect(host.count("speech.say") == count, "speech goes on")
    await page.click("tools.pause")
    bench.expect((await heard(count))[:1] == [{"key": "passes.title", "values": {"locale": "de"}, "volume": 80}], "no speech")
    await page.click("language.fr")
    bench.expect(host.count("journey.activity") >= 1, "no activity")

    # The host ends the journey.
    await page.click("action.finish")
    await page.click("action.restart")
    await page.view("launcher")
    await to_key(page)
    host.event("journey.cancel", reason="staff")
    await page.view("launcher")

    # Without a host.
    alone = await bench.page(host)
    await alone.call("Page.navigate", url=f"{host.origin}/bare")
    await alone.view("noHost")


async def keyboard(bench):
    host = await bench.host()
    page = await bench.page(host)
    await page.view("launcher")

    async def go_to(action, key="Tab", limit=70):
        """Moves the focus, which is always seen."""
        for _ in range(limit):
            await page.key(key)
            here = await page.eval("document.activeElement.dataset.action ?? document.activeElement.id")
            outline = await page.eval("""(() => { const e = document.activeElement; const f = e.closest('.choice') ?? e;
              const style = getComputedStyle(f); const box = f.getBoundingClientRect();
              return e === document.body || e.id === 'heading'
                || (parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== 'none' && box.top < innerHeight && box.bottom > 0); })()""")
            bench.expect(outline, f"the focus on {here} is not seen")
            if here == action:
                return
        raise AssertionError(f"the focus never came to {action} by {key}")

    # Everything by Tab, Enter and letters.
    await go_to("journey.payment")
    await page.key("Enter")
    await page.view("order")
    bench.expect(await page.eval("document.activeElement.id") == "heading", "the focus is not on the heading")
    await go_to("order.pay")
    await page.key("Enter")
    await page.view("paid")
    await go_to("receipt.print")
    await page.key(" ")
    await go_to("action.finish")
    await page.key("Enter")
    await page.view("complete")
    await page.eval("document.body.dataset.old = ''")
    await page.key("Escape")
    await page.until("document.body && !('old' in document.body.dataset)")
    await page.view("launcher")

    # Arrows and OK alone: a passport by its six digits, typed with the keys on the screen.
    await go_to("journey.passport", "ArrowDown")
    await page.key("Enter")
    await page.view("key")
    await go_to("method-fields", "ArrowDown")
    await page.key("ArrowDown")
    await page.key("ArrowDown")
    await page.until("document.getElementById('field-can')")
    bench.expect(await page.eval("document.activeElement.id") == "method-can", "the focus is lost by a choice")
    await page.key("Tab")
    await page.key("ArrowDown")
    bench.expect(await page.eval("document.activeElement.dataset.key") == "1", "the keys are not reached")
    for key, moves in [("1", []), ("5", ["ArrowDown", "ArrowRight"]), ("6", ["ArrowRight"]), ("3", ["ArrowUp"]),
                       ("2", ["ArrowLeft"]), ("5", ["ArrowDown"])]:
        for move in moves:
            await page.key(move)
        bench.expect(await page.eval("document.activeElement.dataset.key") == key, f"not on {key}")
        await page.key("Enter")
    await go_to("key.submit")
    await page.key("Enter")
    await page.view("result")
    bench.expect(host.last("nfc.read")["can"] == "156325", host.last("nfc.read"))
    await go_to("action.finish", "ArrowUp")
    await page.key("Enter")
    await page.view("complete")
    await go_to("tools.large")
    await page.key("Enter")
    bench.expect(await page.eval("document.documentElement.classList.contains('large')"), "not large")
    bench.expect(await page.eval("document.activeElement.dataset.action") == "tools.large", "the focus is lost by a redrawing")

    # The order of the focus is that of the eye.
    for view in ["launcher", "order", "key"]:
        if view == "launcher":
            await fresh(page)
        elif view == "order":
            await page.click("journey.payment")
            await page.view("order")
        else:
            await page.click("action.cancel")
            await to_key(page)
        order = await page.eval("""[...document.querySelectorAll('main :is(button, input, textarea), footer button')]
          .filter((e) => e.tabIndex >= 0).map((e) => { const box = e.getBoundingClientRect(); return [Math.round(box.top), Math.round(box.left)]; })""")
        rows = [top for top, _ in order]
        bench.expect(all(b >= a - 60 for a, b in zip(rows, rows[1:])), f"{view}: {order}")

    # Right to left, the arrow to the left goes forward.
    mirrored = await bench.page(host, "?locale=pseudo")
    await mirrored.view("launcher")
    await mirrored.key("ArrowLeft")
    bench.expect(await mirrored.eval("document.activeElement.dataset.action") == "journey.payment", "not the first")
    await mirrored.key("ArrowLeft")
    bench.expect(await mirrored.eval("document.activeElement.dataset.action") == "journey.passport", "not the next")
    await mirrored.key("ArrowRight")
    bench.expect(await mirrored.eval("document.activeElement.dataset.action") == "journey.payment", "not back")

"""A walk through every view of the page: `stop(name)` is called at each."""
import asyncio

from page_browser import PATIENCE
from page_mock import Refusal, capabilities, document, euro, paid, picture


class Later:
    """An answer that the test gives when it wants to."""

    def __init__(self):
        self.asked, self.answered = asyncio.Event(), asyncio.get_running_loop().create_future()
        self.correlation = None

    async def __call__(self, data, correlation):
        self.correlation = correlation
        self.asked.set()
        return await self.answered

    async def is_asked(self):
        """Waits until the page has asked."""
        try:
            await asyncio.wait_for(self.asked.wait(), PATIENCE)
        except asyncio.TimeoutError:
            raise AssertionError("never asked for what a test answers later")

    def give(self, value):
        if self.answered.done():
            return  # the connection went, and the request with it
        if isinstance(value, Exception):
            self.answered.set_exception(value)
        else:
            self.answered.set_result(value)


TAPS = ["presentCard", "reading", "removeCard", "processing", "seePhone", "tryAgain", "otherCard"]


async def home(page):
    await page.click("action.restart")
    await page.view("launcher")


async def tap(host, page, hurried=False):
    """As far as the tap; where the finger is hurried, it presses once more when the view of the tap has come."""
    later = host.on["payment.start"] = Later()
    await page.click("journey.payment")
    await page.view("order")
    place = await page.click("order.pay")
    await page.view("tap")
    await later.is_asked()
    if hurried:
        host.state("presentCard")
        await page.settled()
        await page.touch(*place)
    return later


async def to_key(page):
    await page.click("journey.passport")
    await page.view("key")


async def fill(page, **fields):
    for name, value in fields.items():
        await page.click(f"#field-{name}")
        await page.eval(f"document.getElementById('field-{name}').select()")
        await page.type(value)


# The specimen of ICAO Doc 9303-4, appendix A, with the dates that its lines say.  # TEST
FIELDS = {"number": "L898902C3", "birth": "12 08 1974", "expiry": "15 04 2012"}


async def finish(page):
    """From the end of a journey to the launcher."""
    await page.click("action.finish")
    await page.view("complete")


async def fresh(page):
    """The next customer's page, in the same language."""
    await page.eval("document.body.dataset.old = ''")
    await page.click("action.restart")
    await page.until("document.body && !('old' in document.body.dataset)")
    await page.view("launcher")


async def tour(host, page, stop, begin=None):
    begin = begin or (lambda: asyncio.sleep(0))
    await page.view("launcher")
    await begin()
    await stop("launcher")
    host.capabilities = capabilities("nfc.read", "camera.document")
    host.event("host.capabilitiesChanged", capabilities=host.capabilities)
    await page.until("document.querySelectorAll('.badge.missing').length === 2")
    await stop("launcher-missing")
    await page.click("journey.passport")
    await page.view("warning")
    await stop("warning")
    await page.click("action.cancel")
    host.capabilities = capabilities()
    host.event("host.capabilitiesChanged", capabilities=host.capabilities)
    await page.until("document.querySelectorAll('.badge.ready').length === 5")

    # Passport.
    await to_key(page)
    await stop("key")
    for method in ["can", "mrz"]:
        await page.click(f"#method-{method}")
        await page.until(f"document.getElementById('field-{method}')")
        await stop(f"key-{method}")
    await page.click("#method-fields")
    await fill(page, number="L898902C3", birth="31 02 1974", expiry="15 04 2012")
    await page.click("key.submit")
    await page.until("document.querySelector('[aria-invalid]')")
    await stop("key-wrong")
    await page.click("key.photo")
    await page.view("photo")
    await stop("photo")
    later = host.on["camera.document.capture"] = Later()
    await page.click("photo.take")
    await page.view("photoWait")
    await stop("photo-wait")
    later.give({**picture(240, 160, 120), "quality": {"sharpness": 0.2, "glare": 0.1, "coverage": 0.9}})
    await page.view("photoShown")
    await stop("photo-blurred")
    del host.on["camera.document.capture"]
    await page.click("photo.again")
    await page.until("document.querySelector('.comment.good')")
    await stop("photo-good")
    await page.click("photo.use")
    await page.view("key")
    await stop("key-photo")
    await fill(page, **FIELDS)
    later = host.on["nfc.read"] = Later()
    await page.click("key.submit")
    await page.view("hold")
    await stop("hold-present")
    await later.is_asked()
    for step, fraction in [("access", 0.1), ("reading", 0.45), ("checking", 0.9)]:
        host.event("nfc.progress", request=later.correlation, step=step, fraction=fraction)
        await page.until(f"document.querySelector('.step-{step}')")
        await stop(f"hold-{step}")
    later.give(Refusal("ACCESS_DENIED"))
    await page.view("error")
    await stop("error-access")
    for name, answer in [("yes", document()), ("no", document("no", "no", ["DG2 was changed."])),
                         ("unknown", document("unknown", "unknown"))]:
        if name == "yes":
            await page.click("action.retry")
            await page.view("key")
        else:
            await to_key(page)
            await fill(page, **FIELDS)
        host.on["nfc.read"] = answer
        await page.click("key.submit")
        await page.view("result")
        await page.until("document.querySelector('.portrait').complete")
        await stop(f"result-{name}")
        await finish(page)
        if name == "yes":
            await stop("complete")
        await fresh(page)
        await begin()

    # Payment.
    host.order, order = None, host.order
    await page.click("journey.payment")
    await page.view("orderNone")
    await stop("order-none")
    host.order = order
    await home(page)
    later = host.on["payment.start"] = Later()
    await page.click("journey.payment")
    await page.view("order")
    await stop("order")
    await page.click("order.pay")
    await page.view("tap")
    await stop("pay-idle")
    await later.is_asked()
    for name in TAPS:
        host.state(name)
        await page.until(f"document.querySelector('main').dataset.state === '{name}'")
        await stop(f"pay-{name}")
    later.give(paid(loyalty={"member": "****4711", "saved": euro(123)}))
    await page.view("paid")
    await stop("pay-approved")
    await page.click("receipt.print")
    await page.until("!document.querySelector('[data-action=\"receipt.print\"]')")
    await stop("pay-receipt")
    await finish(page)
    await fresh(page)
    await begin()
    for outcome in ["declined", "unknown", "cancelled"]:
        later = await tap(host, page)
        later.give(Refusal("CANCELLED", status="cancelled") if outcome == "cancelled" else paid(outcome))
        await page.view("paid")
        await stop(f"pay-{outcome}")
        await finish(page)
        await fresh(page)
        await begin()
    later = await tap(host, page)
    host.state("reading")
    host.down = True
    host.drop()
    await page.view("payLost")
    await stop("pay-lost")
    host.down, host.payment = False, {"order": order["id"], "state": "approved", "outcome": "approved"}
    await page.view("paid")
    await finish(page)
    host.payment = None
    await fresh(page)
    await begin()

    # Loyalty cards.
    later = host.on["pass.read"] = Later()
    await page.click("journey.passes")
    await page.view("passesHold")
    await stop("passes-hold")
    later.give({"passes": [{"merchant": "Café Utopia", "status": "read", "member": "****4711"},
                           {"merchant": "Bakery of the North", "status": "read"}]})
    await page.view("passes")
    await stop("passes")
    await finish(page)
    await fresh(page)
    await begin()

    # The kiosk itself.
    host.event("host.headphones", connected=True)
    await page.until("document.querySelector('[data-action=\"tools.again\"]')")
    await stop("headphones")
    host.event("host.background")
    await page.view("connecting")
    await stop("connecting")
    host.event("host.foreground")
    await page.view("launcher")
    host.event("host.outOfService", inService=False)
    await page.view("outOfService")
    await stop("out-of-service")
    host.event("host.outOfService", inService=True)
    await page.view("launcher")
    host.event("host.background")
    await page.view("connecting")
    host.occupied = True
    host.drop()
    await page.view("occupied")
    await stop("occupied")
    host.occupied = False
    await page.view("launcher")
    host.down = True
    host.drop()
    await page.until("!document.getElementById('banner').hidden")
    await stop("link-lost")
    host.down = False
    await page.until("document.getElementById('banner').hidden")

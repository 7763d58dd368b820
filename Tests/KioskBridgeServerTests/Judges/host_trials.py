#!/usr/bin/env python3
"""What a kiosk lives through: kiosk-host in front of Debian's Chromium is killed during payments, has two pages, has many
customers.

    host_trials.py PROGRAMS killed               the service is killed at four moments of a tap, and started again
    host_trials.py PROGRAMS pages                two pages
    host_trials.py PROGRAMS unplugged            the reader is unplugged at the checkout
    host_trials.py PROGRAMS customers COUNT      customers, and the memory of page and service
    host_trials.py PROGRAMS idle                 wake-ups of a kiosk with nothing to do
    host_trials.py PROGRAMS flood                a payment with a flood of messages behind it
    host_trials.py PROGRAMS checkout             a checkout's states, and when the page shows them
    host_trials.py PROGRAMS numbers [--gate]     all of these and memory: counts and ratios against their limits, or counts only

PROGRAMS is the folder of kiosk-host and psp-sandbox.  Prints what was seen, and exits with 1 at what must not be, with 75 where the
machine is too noisy to tell.
"""
import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from host_kiosk import Kiosk, Sandbox, at, expect, leave, until  # noqa: E402
from host_numbers import Undecided, checkout, flood, idle, numbers  # noqa: E402
from page_browser import Browser  # noqa: E402


async def tap(page):
    await page.click("journey.payment")
    await page.view("order")
    await page.click("order.pay")


async def offers_no_payment(page, when):
    names = await page.eval("[...document.querySelectorAll('[data-action]')].map((one) => one.dataset.action)")
    expect(not {"order.pay", "journey.payment", "action.retry"} & set(names), f"{when}: {names}")


# The moments: what the kiosk is started with, what the payment service does, and how the moment is known.
async def no_card(page, sandbox):
    await page.until(at("presentCard"), "the wait for a card")
    expect(not sandbox.books, "a payment without a card")


async def card_read(page, sandbox):
    await page.until(at("reading"), "a card that is read")


async def approved(page, sandbox):
    # The books have it, and its answer is held back.
    await until(lambda: sandbox.books, "an approval in the books")
    await page.until(at("processing"), "the wait for the service")


async def under_way(page, sandbox):
    # The call has come in, and is carried out later: when the kiosk that made it is gone.
    await until(lambda: sandbox.ask("faults")["delayed"], "a call that is under way")


MOMENTS = {
    "before the card": (["--by-hand"], None, no_card, 0),
    "while the card is read": (["--fault", "slow=200"], None, card_read, 0),
    "after the approval": ([], "late", approved, 1),
    "before the approval": ([], "delayed", under_way, 1),
}


class Missed(Exception):
    """The moment was over before the kill: this machine has held the test up."""


async def moment(browser, programs, name):
    arguments, fault, reached, booked = MOMENTS[name]
    sandbox = await Sandbox().start(programs, "--late", "3600")
    kiosk = Kiosk(programs, sandbox)
    try:
        await kiosk.start(*arguments)
        page = await browser.page(kiosk.address)
        await page.view("launcher")
        if fault:
            sandbox.ask("faults", {"kind": fault, "calls": 1})
        await tap(page)
        await reached(page, sandbox)
        await kiosk.kill()
        await page.view("payLost")
        lost = await page.eval("document.querySelector('main').innerText")
        expect("may" in lost, f"not said: {lost}")
        await offers_no_payment(page, "after the end of the service")

        # It settles what it left before it serves a page.
        await kiosk.start("--pause", "0")
        await page.view("paid")
        await page.until(at("unknown"), "the outcome that is not known")
        await offers_no_payment(page, "with an unknown outcome")
        said = await page.eval("document.querySelector('main h1').innerText")
        # The call that was under way ends after that.
        sandbox.ask("delayed", {})
        if len(sandbox.books) > booked:
            raise Missed
        expect(len(sandbox.books) == booked, f"{booked} payments: {sandbox.books}")
        await until(lambda: all(one["status"] != "approved" for one in sandbox.books), "the reversal")

        await leave(page)
        await tap(page)
        await page.until(at("approved"), "the next customer's approval")
        books = sandbox.books
        paid = [one["amount"] for one in books if one["status"] == "approved"]
        expect(len(books) == booked + 1 and paid == ["11.11"], f"{books}")
        before = ", ".join(one["status"] for one in books[:booked]) or "nothing"
        await page.close()
        # The link that was cut is a network error.
        expect(all("WebSocket" in line or "Failed to load" in line for line in page.console), page.console)
        print(f"killed {name}: “{said}”; booked: {before}; then paid: {paid}", flush=True)
    finally:
        kiosk.stop()
        sandbox.stop()


async def killed(browser, programs, *names):
    for name in names or MOMENTS:
        for _ in range(10):
            try:
                await moment(browser, programs, name)
                break
            except Missed:
                print(f"killed too late: {name}", flush=True)
        else:
            raise AssertionError(f"ten times too late: {name}")


async def pages(browser, programs):
    """The second page says so in words, and comes in when the first is closed."""
    kiosk = Kiosk(programs)
    try:
        await kiosk.start()
        first = await browser.page(kiosk.address)
        await first.view("launcher")
        second = await browser.page(kiosk.address)
        await second.view("occupied")
        print("second:", await second.eval("document.querySelector('main').innerText.replace(/\\s+/g, ' ')"), flush=True)
        # The first one goes on, and is not asked.
        await first.click("journey.payment")
        await first.view("order")
        await first.close()
        await second.view("launcher")
        expect(await second.eval("document.getElementById('banner').hidden"), "the banner stays")
        await second.close()
    finally:
        kiosk.stop()


async def unplugged(browser, programs):
    """The tap is a way to pay while its reader is there, and one that has begun fails with it."""
    sandbox = await Sandbox().start(programs)
    kiosk = Kiosk(programs, sandbox, model="acr122u")
    ways = "[...document.querySelectorAll('[data-action^=\"method.\"]')].map((one) => one.dataset.action).join()"
    try:
        await kiosk.start("--checkout")
        page = await browser.page(kiosk.address)

        async def offers(what, expected):
            await page.until(f"{at('selection.ready')} && {ways} === '{expected}'", f"{expected} {what}")
            print(f"{what}: {expected}", flush=True)

        await offers("at the start", "method.tap,method.voucher")
        kiosk.do("unplug")
        await offers("unplugged during the selection", "method.voucher")
        kiosk.do("plug")
        await offers("plugged in", "method.tap,method.voucher")
        await page.click("method.tap")
        await page.until(at("tap.presentCard"), "the wait for a card")
        kiosk.do("unplug")
        await page.until(at("failure"), "the failure of a tap without a reader")
        print("unplugged during the tap:", await page.eval("document.querySelector('main').innerText.replace(/\\s+/g, ' ')"))
        await page.click("checkout.back")
        await offers("after the failure", "method.voucher")
        kiosk.do("plug")
        await offers("plugged in again", "method.tap,method.voucher")
        await page.click("method.tap")
        await page.until(at("tap.presentCard"), "the wait for a card")
        kiosk.do("insert visa")
        await page.until(at("success"), "a payment")
        paid = [f"{one['amount']} {one['status']}" for one in sandbox.books]
        expect(paid == ["12.34 approved"], f"paid: {paid}")
        await page.close()
    finally:
        kiosk.stop()
        sandbox.stop()


async def customers(browser, programs, count="60"):
    """Neither page nor service grow: each customer pays with the pass and the card of a phone, and gets a receipt."""
    count, warm = int(count), 20
    sandbox = await Sandbox().start(programs)
    kiosk = Kiosk(programs, sandbox)
    try:
        # One arena, and what is free goes back: resident is what is in use.
        await kiosk.start("--pause", "0", MALLOC_ARENA_MAX="1", MALLOC_TRIM_THRESHOLD_="65536", MALLOC_TOP_PAD_="65536")
        page = await browser.page(kiosk.address)
        await page.view("launcher")

        async def measure():
            await page.call("HeapProfiler.collectGarbage")
            heap = (await page.call("Runtime.getHeapUsage"))["usedSize"]
            counters = await page.call("Memory.getDOMCounters")
            return heap, counters["nodes"], counters["documents"], kiosk.status("RssAnon") * 1024

        start, seen = time.monotonic(), []
        for number in range(1, count + 1):
            await page.eval(CUSTOMER)
            await page.eval("document.querySelector('[data-action=\"action.restart\"]').click()")
            await page.until("document.body && !('old' in document.body.dataset)"
                             " && document.querySelector('main')?.dataset.view === 'launcher'")
            if number == warm or number == count or number % 100 == 0:
                seen.append(await measure())
                if number % 100 == 0:
                    print(number, seen[-1], flush=True)
        books = sandbox.books
        expect(len(books) == count and all(one["status"] == "approved" for one in books), "not everybody paid once")
        first, last = seen[0], seen[-1]
        print(f"{count} customers in {time.monotonic() - start:.1f} s; from the {warm}th on: heap of the page "
              f"{first[0]} to {last[0]} bytes, nodes {first[1]} to {last[1]}, documents {first[2]} to {last[2]}, memory of "
              f"the service {first[3]} to {last[3]} bytes", flush=True)
        expect(last[0] < first[0] * 1.15 + 100_000, "the heap of the page grows")
        expect(last[1] < first[1] * 1.5 + 200 and last[2] <= first[2] + 2, "the nodes of the page grow")
        # What the virtual reader records of its radio, 3 kB each, and timers of a minute; then what the heap rounds up to.
        expect(last[3] - first[3] < 4_000 * (count - warm) + 2_000_000, "the memory of the service grows")
    finally:
        kiosk.stop()
        sandbox.stop()


# A customer who is as fast as the kiosk.
CUSTOMER = """(async () => {
  const press = async (action) => {
    const end = Date.now() + 60000;
    for (;;) {
      const control = document.querySelector(`[data-action="${action}"]`);
      if (control) return control.click();
      if (Date.now() > end) throw new Error(`${action}: ${document.querySelector('main').innerText}`);
      await new Promise((done) => setTimeout(done, 1));
    }
  };
  document.body.dataset.old = '';
  for (const action of ['journey.payment', 'order.pay', 'receipt.print', 'action.finish']) await press(action);
})()"""

TRIALS = {"killed": killed, "pages": pages, "unplugged": unplugged, "customers": customers, "idle": idle, "flood": flood,
          "checkout": checkout, "numbers": numbers}


async def main(programs, trial, *arguments):
    browser = await Browser().start()
    try:
        await TRIALS[trial](browser, programs, *arguments)
        return 0
    except AssertionError as fault:
        print(f"FAULT {fault}", file=sys.stderr)
        return 1
    except Undecided:
        return 75
    finally:
        await browser.stop()


sys.exit(asyncio.run(main(*sys.argv[1:])))

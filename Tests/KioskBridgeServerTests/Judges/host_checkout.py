#!/usr/bin/env python3
"""Customers at the checkout of kiosk-host in Debian's Chromium, each with another way to pay.

    host_checkout.py PROGRAMS [CUSTOMER...]

PROGRAMS is the folder of kiosk-host and psp-sandbox.  Prints what was seen, and exits with 1 at what must not be: a second
payment, a message against the schema, a card's number or code anywhere but in the field that it is typed into.
"""
import asyncio
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parents[2] / ".build" / "jsonschema"))
from host_kiosk import Kiosk, Sandbox, at, expect, leave, until  # noqa: E402
from page_browser import Browser  # noqa: E402
from page_schema import faults  # noqa: E402

# Published test numbers (Stripe, "Testing"), with codes that are nowhere else.  # TEST
AMEX, AMEX_PASTED, AMEX_CODE = "378282246310005", "3782-822463 10005", "7391"
CHALLENGED, VISA, CODE = "4000000000003220", "4242424242424242", "739"


async def begin(page):
    await page.view("launcher")
    await page.click("journey.checkout")
    await page.until(at("selection.ready"))


async def fill(page, **fields):
    for name, text in fields.items():
        await page.click(f"#checkout-{name}")
        await page.eval(f"document.getElementById('checkout-{name}').select()")
        await page.type(text)


async def card(page, number, code):
    await page.click("method.card")
    await page.until(at("card"))
    await fill(page, CARD_NUMBER=number, EXPIRY_DATE="12/49", CVV=code, CARDHOLDER_NAME="Ada Lovelace", COUNTRY_CODE="DE",
               POSTAL_CODE="10115")
    await can_pay(page)


async def can_pay(page):
    await page.until("document.querySelector('[data-action=\"checkout.submit\"]:not([aria-disabled])')", "a form that can pay")


def text(page):
    return page.eval("document.querySelector('main').innerText.replace(/\\s+/g, ' ')")


async def has_no_card(page, *secrets):
    """Nothing of the document has the card, values and attributes included."""
    everything = await page.eval("""document.documentElement.outerHTML
        + JSON.stringify([...document.querySelectorAll('input')].map((one) => one.value))""")
    expect(not any(re.search(rf"\b{secret}\b", everything) for secret in secrets), "the card is in the page after it paid")


# Customers.

async def by_card(page, sandbox):
    """A number pasted with separators, a country without postal codes, another language in the middle, a double press."""
    await begin(page)
    await page.click("method.card")
    await page.until(at("card"))
    await fill(page, CARD_NUMBER=AMEX_PASTED, EXPIRY_DATE="12/49", CVV=AMEX_CODE)
    await page.until("document.querySelector('.network')?.textContent === 'American Express'")
    await page.until("document.querySelector('.sums').innerText.includes('€0.50')")
    await fill(page, CARDHOLDER_NAME="Ada Lovelace", COUNTRY_CODE="HK")
    await page.until("!document.getElementById('checkout-POSTAL_CODE')", "a country without postal codes")
    await page.click("language.de")
    await page.until("document.querySelector('label[for=checkout-CARD_NUMBER]').textContent === 'Kartennummer'")
    await fill(page, COUNTRY_CODE="DE")
    await page.until("document.getElementById('checkout-POSTAL_CODE')")
    await fill(page, POSTAL_CODE="1")
    await page.click("#checkout-CVV")
    await page.until("document.getElementById('checkout-POSTAL_CODE').ariaInvalid === 'true'", "a postal code that is none")
    mask = await page.eval("document.getElementById('checkout-CARD_NUMBER-mask').textContent")
    await fill(page, POSTAL_CODE="10115")
    await can_pay(page)
    # Both at once: the second is harmless.
    await page.eval("for (let press = 0; press < 2; press += 1) document.querySelector('[data-action=\"checkout.submit\"]').click()")
    await page.until(at("success"))
    await has_no_card(page, AMEX, AMEX_PASTED, AMEX_CODE)
    print("card:", mask, await text(page), flush=True)
    await page.click("receipt.print")
    await page.until("/wird gedruckt/.test(document.body.innerText)", "a receipt that is being printed")
    await page.click("language.en")
    await leave(page)
    expect([one["amount"] for one in sandbox.books] == ["12.84"], f"paid: {sandbox.books}")


async def filled_in(page, sandbox):
    """The browser fills in the card without a key; the bank asks the customer, whose phone reads where."""
    await begin(page)
    await page.click("method.card")
    await page.until(at("card"))
    card = {"cc-number": CHALLENGED, "cc-exp": "12/49", "cc-csc": CODE, "cc-name": "Ada Lovelace", "country": "DE",
            "postal-code": "10115"}
    await page.eval("for (const [name, text] of Object.entries(%s)) {"
                    "const field = document.querySelector(`main input[autocomplete='${name}']`); field.value = text;"
                    "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, { bubbles: true })); }"
                    % json.dumps(card))
    await can_pay(page)
    await page.click("checkout.submit")
    await page.until(at("challenge"))
    await has_no_card(page, CHALLENGED, CODE)
    print("challenge:", await text(page), flush=True)
    # Loaded anew while the bank waits: it is still there.
    await page.call("Page.reload")
    await page.until(at("challenge"))
    await page.until("document.querySelector('.code')", "a code")
    address, = await page.scan()
    expect(address.startswith(sandbox.address + "/challenges/"), f"the code leads to {address}")
    expect(await page.eval("document.querySelector('.address').textContent") == sandbox.address.removeprefix("http://"),
           "the name of the host that the code leads to")
    sandbox.ask(address.removeprefix(sandbox.address + "/"), {"outcome": "passed"})
    await page.until(at("success"))
    await leave(page)


async def declined_first(page, sandbox):
    """A card that is declined, then the same form with another card; nothing of the first one's secrets is left in it."""
    await begin(page)
    await card(page, VISA, CODE)
    # That for its token, and the payment.
    sandbox.ask("faults", {"kind": "declined", "calls": 2})
    await page.click("checkout.submit")
    await page.until(at("failure"))
    print("declined:", await text(page), flush=True)
    await page.click("checkout.retry")
    await page.until(at("card"))
    values = await page.eval("[...document.querySelectorAll('main input')].map((one) => one.value)")
    expect(values == ["", "12/49", "", "Ada Lovelace", "DE", "10115"], f"the form after a failure: {values}")
    await fill(page, CARD_NUMBER="4242 4242 4242 4242", CVV=CODE)
    await can_pay(page)
    await page.key("Enter")
    await page.until(at("success"))
    await leave(page)


async def another_way(page, sandbox):
    """A voucher that is unknown, and then a tap, with its receipt."""
    await begin(page)
    await page.click("method.voucher")
    await page.until(at("voucher"))
    await fill(page, VOUCHER_CODE="UNKNOWN-1")
    await can_pay(page)
    await page.click("checkout.submit")
    await page.until(at("failure"))
    await page.click("[data-action='checkout.back']")
    await page.until(at("selection.ready"))
    await page.click("method.tap")
    await page.until(at("success"))
    await page.click("receipt.print")
    await page.until("/being printed/.test(document.body.innerText)")
    print("tap:", await text(page), flush=True)
    await leave(page)


async def by_voucher(page, sandbox):
    """Back, forward and a page that is loaded anew end a form, and the next checkout is a new one."""
    await begin(page)
    await card(page, VISA, CODE)
    await page.call("Page.reload")
    await page.view("launcher")
    await has_no_card(page, VISA, CODE)
    await begin_again(page)
    await page.click("method.voucher")
    await page.until(at("voucher"))
    await page.call("Page.navigate", url="about:blank")
    await page.until("location.href === 'about:blank'")
    await page.eval("setTimeout(() => history.back())")
    await page.view("launcher")
    await begin_again(page)
    await page.click("method.voucher")
    await page.until(at("voucher"))
    await fill(page, VOUCHER_CODE="GIFT-4711")
    await page.key("Enter")
    await page.until(at("success"))
    print("voucher:", await text(page), flush=True)
    await leave(page)


async def begin_again(page):
    """Begins; the last page's checkout may just be ending."""
    await page.click("journey.checkout")
    failed = "document.querySelector('main').dataset.view === 'error'"
    while await page.until(f"{at('selection.ready')} ? 'ready' : {failed} ? 'error' : null") == "error":
        await page.eval("document.getElementById('heading').dataset.old = ''")
        await page.click("action.retry")
        await page.until("!('old' in document.getElementById('heading').dataset)")


async def member(page, sandbox):
    """Who shows a loyalty card first pays a member's price, by any method."""
    await page.click("journey.passes")
    await page.view("passes")
    await page.click("journey.checkout.title")
    await page.until(at("selection.ready"))
    print("member:", await text(page), flush=True)
    await card(page, VISA, CODE)
    await page.click("checkout.submit")
    await page.until(at("success"))
    await leave(page)
    expect(sandbox.books[-1]["amount"] == "11.11", f"a member paid {sandbox.books[-1]}")
    # The next customer is none.
    await begin(page)
    expect("€12.34" in await text(page), "the next customer has a member's price")
    await page.click("checkout.cancel")


# With what the books then have.
CUSTOMERS = {by_card: ["12.84 approved"], filled_in: ["12.34 approved"], declined_first: ["12.34 declined", "12.34 approved"],
             another_way: ["12.34 declined", "12.34 approved"], by_voucher: ["12.34 approved"], member: ["11.11 approved"]}
# Of the card that was typed.
RECEIPT = [r"Gebühren +0,50", r"BEZAHLT +12,84 EUR", r"Karte.*American Express \*{4} 0005", r"Erfassung.*Manuell"]
SECRETS = [AMEX, AMEX_PASTED, AMEX_CODE, CHALLENGED, VISA, CODE]


def tainted(text):
    """The secrets that a text has as words of their own."""
    return [one for one in SECRETS if re.search(rf"(?<![0-9A-Za-z.]){one}(?![0-9A-Za-z.])", text)]


async def main(programs, *names):
    customers = [one for one in CUSTOMERS if one.__name__ in names or not names]
    sandbox = await Sandbox().start(programs, "--late", "8")
    kiosk = Kiosk(programs, sandbox)
    browser = await Browser().start()
    try:
        await kiosk.start("--card-entry", "--checkout", "--pause", "0", "--verbose")
        expect(kiosk.address.endswith("/?checkout"), kiosk.address)
        page = await browser.page("about:blank")
        page.frames = []
        await page.call("Page.navigate", url=kiosk.address)
        await page.until(at("selection.ready"))
        await page.click("checkout.cancel")
        for customer in customers:
            await customer(page, sandbox)
        paid = [f"{one['amount']} {one['status']}" for one in sandbox.books]
        expect(paid == [line for customer in customers for line in CUSTOMERS[customer]], f"paid: {paid}")
        sent = [text for is_sent, text in page.frames if is_sent]
        told = [text for is_sent, text in page.frames if not is_sent]
        wrong = sorted(set(faults(page.frames)))
        expect(not wrong, wrong)
        expect(not page.console, page.console)
        # That there is something to find: what the page sends has the card.
        expect(len(tainted("".join(sent))) >= (2 if names else 5), "the page has sent no card")
        leaks = [one for one in told if tainted(one)]
        expect(not leaks, f"{len(leaks)} messages of the service have a card")
        print(f"{len(told)} messages to the page, {len(sent)} of it: no card comes back", flush=True)
        await page.close()
        await browser.stop(look=lambda profile: expect(not in_files(profile), f"in the profile: {in_files(profile)}"))
        await kiosk.end()
        log = kiosk.log
        expect("checkout.update" in log, f"the log says nothing: {log[-500:]}")
        expect(not tainted(log), f"the service's log has a card: {tainted(log)}")
        expect(not in_files(Path(kiosk.folder)), "a file of the service has a card")
        for line in RECEIPT if by_card in customers else []:
            expect(re.search(line, log, re.I), f"the receipt of a typed card lacks {line}: {log}")
        print("nothing in the profile, in the log, in the service's files", flush=True)
        return 0
    except AssertionError as fault:
        print(f"FAULT {fault}", file=sys.stderr)
        return 1
    finally:
        await browser.stop()
        kiosk.stop()
        sandbox.stop()


def in_files(folder):
    """Files with a number, in UTF-8 or UTF-16.  Three digits alone are in any file."""
    numbers = [one for one in SECRETS if len(one) > 4]
    return [str(file) for file in folder.rglob("*") if file.is_file() and any(
        one.encode(form) in file.read_bytes() for one in numbers for form in ["utf-8", "utf-16-le"])]


sys.exit(asyncio.run(main(*sys.argv[1:])))

"""The page's checkout: a walk through its views, and what it does with them, against a host that tells what a test says."""
import subprocess

from page_mock import ORDER, capabilities, euro
from page_tour import finish

# Published test numbers (Stripe, "Testing": Visa; Cartes Bancaires with Visa), and a code that is nowhere else.  # TEST
NUMBER, SPACED, CODE = "4242424242424242", "4242 4242-4242 4242", "739"
ACTIONS = ["start", "select", "search", "update", "leave", "chooseNetwork", "submit", "back", "retry", "cancel", "locale"]
METHODS = [{"id": "tap", "kind": "tap", "name": "Contactless", "networks": []},
           {"id": "card", "kind": "card", "name": "Card", "networks": [], "surcharge": euro(30), "text": "Surcharge: €0.30"},
           {"id": "voucher", "kind": "voucher", "name": "Voucher", "networks": []}]
MANY = METHODS + [{"id": f"bank-{name}", "kind": "bank", "name": name, "networks": []} for name in ["North", "South"]]
BACK = [{"action": "checkout.back", "label": "Back"}]
CANCEL = [{"action": "checkout.cancel", "label": "Cancel"}]
RETRY = [{"action": "checkout.retry", "label": "Try again"}]
OTHER = [{"action": "checkout.back", "label": "Pay another way"}]
VISA, CB = {"id": "visa", "name": "Visa"}, {"id": "cartes-bancaires", "name": "Cartes Bancaires"}


def state(route, actions=(), surcharge=0, **more):
    total = ORDER["total"]["amount"] + surcharge
    sums = [f"Total: {euro(total)['text']}"]
    if surcharge:
        sums.insert(0, f"Surcharge: {euro(surcharge)['text']}")
        more["surcharge"] = euro(surcharge)
    return {"order": ORDER["id"], "route": route, "amount": euro(total), "sums": sums,
            "said": [{"key": f"{route}.title"}, {"key": "checkout.total", "values": {"amount": euro(total)["text"]}}],
            "actions": list(actions), **more}


def selection(methods=METHODS, query=None):
    shown = [one for one in methods if not query or query.lower() in one["name"].lower()]
    ways = {"status": "ready", "text": "How would you like to pay?", "methods": shown,
            "count": f"{len(shown)} way{'s' if len(shown) != 1 else ''} to pay"}
    if len(methods) > 4:
        ways["search"] = "Search"
    return state("methodSelection", CANCEL, selection=ways)


LOADING = state("methodSelection", CANCEL, selection={"status": "loading", "text": "One moment, please …"})
UNFETCHED = state("methodSelection", RETRY + CANCEL,
                  selection={"status": "error", "text": "The payment was not made."})


def tap(name, text):
    over = name in ("reading", "removeCard", "processing")
    return state("method", [] if over else BACK + CANCEL, method=METHODS[0], tap={"state": name, "text": text})


TAPS = {"idle": "One moment, please …", "presentCard": "Hold your card or phone to the reader.",
        "reading": "Reading. Please hold still.", "seePhone": "See your phone for instructions.",
        "tryAgain": "Please present your card again.", "otherCard": "Please try another card.",
        "removeCard": "Please remove your card.", "processing": "The payment is being processed.",
        "outOfService": "The reader is not available."}


def field(name, label, value="", error=None, **more):
    return {"kind": "field", "field": name, "label": label, "placeholder": label, "isRequired": True, "value": value,
            "error": error, "errorKey": error and f"error.{name}", "maximumLength": 64, "autocomplete": "off",
            "inputMode": "text", "isSecret": False, **more}


LABELS = {"en": ("Card number", "Expiry date", "Security code", "Country", "Postal code", "Pay €12.64"),
          "de": ("Kartennummer", "Gültig bis", "Prüfziffer", "Land", "Postleitzahl", "12,64 € bezahlen")}


def card(values=None, errors=None, network=None, networks=None, ready=False, loading=False, locale="en", country="DE"):
    values, errors = values or {}, errors or {}
    number, expiry, code, land, postal, pay = LABELS[locale]

    def one(name, label, **more):
        return field(name, label, values.get(name, ""), errors.get(name), **more)

    details = [one("CARD_NUMBER", number, autocomplete="cc-number", inputMode="numeric", isSecret=True, maximumLength=23),
               one("EXPIRY_DATE", expiry, autocomplete="cc-exp"),
               one("CVV", code, autocomplete="cc-csc", inputMode="numeric", isSecret=True, maximumLength=4)]
    if networks:
        details.append({"kind": "networks", "label": "Pay with", "networks": networks, "chosen": network and network["id"]})
    billing = [one("COUNTRY_CODE", land, autocomplete="country", maximumLength=3)]
    # As in Hong Kong, which has no postal codes.
    if country != "HK":
        billing.append(one("POSTAL_CODE", postal, autocomplete="postal-code", maximumLength=12))
    form = {"elements": [{"kind": "group", "title": "Card details", "elements": details},
                         {"kind": "group", "title": "Billing address", "elements": billing},
                         {"kind": "button", "label": pay, "isEnabled": ready, "isLoading": loading}]}
    if network:
        form["network"] = network
    return state("method", BACK + CANCEL, 30, method=METHODS[1], form=form)


def voucher(value="", error=None):
    return state("method", BACK + CANCEL, method=METHODS[2], form={"elements": [
        field("VOUCHER_CODE", "Voucher code", value, error), {
            "kind": "button", "label": "Pay €12.34", "isEnabled": bool(value) and not error, "isLoading": False}]})


def challenge(address="https://bank.example/challenges/1", has_code=True):
    more = {"text": "Please confirm the payment with your bank.", "page": address}
    if has_code:
        made = subprocess.run(["qrencode", "-8", "-l", "M", "-m", "0", "-t", "ASCII", "-o", "-", address], check=True,
                              stdout=subprocess.PIPE, text=True)
        # Two letters for each module.
        modules = ["".join("01"[letter == "#"] for letter in line[::2]) for line in made.stdout.splitlines()]
        more |= {"hint": "Scan the code with your phone’s camera. It opens the address below it.",
                 "code": {"label": "QR code of the bank’s address", "modules": modules}}
    return state("challenge", **more)


PROCESSING = state("processing", text="The payment is being processed.")
CHALLENGE, UNCODED = challenge(), challenge(has_code=False)
FAILURE = state("failure", RETRY + OTHER + CANCEL, text="The payment was not made.", recovery="otherMethod",
                hint="Please try another card or another way to pay.")
UNKNOWN = state("failure", RETRY + CANCEL, recovery="retry",
                text="It is not known yet whether the payment was made. Please ask our staff.")
SUCCESS = state("success", text="Thank you. The payment was made.", card="424242******4242", receipt=True,
                loyalty={"member": "****4711", "saved": euro(123)})
FILLED = {"CARD_NUMBER": "424242******4242", "EXPIRY_DATE": "12/49", "COUNTRY_CODE": "DE", "POSTAL_CODE": "10115"}


def offer(host):
    """A kiosk that has a checkout."""
    host.capabilities = {**capabilities(), "checkout.start": {"supported": True, "version": "1.0", "permissionState": "granted"}}
    for action in ACTIONS:
        host.on[f"checkout.{action}"] = {}


def tell(host, told):
    host.event("checkout.state", **told)


def at(name):
    return f"document.querySelector('main')?.dataset.state === '{name}'"


async def begin(host, page):
    """As far as the selection."""
    await page.view("launcher")
    await press(host, page, "journey.checkout", "checkout.start")
    tell(host, selection())
    await page.until(at("selection.ready"))


async def press(host, page, control, action):
    """Presses a control, and waits for its request."""
    before = host.count(action)
    await page.click(control)
    await host.asked(action, before + 1)


async def checkout_tour(host, page, stop):
    """Every view of the checkout."""
    offer(host)
    host.event("host.capabilitiesChanged", capabilities=host.capabilities)
    await page.until("document.querySelector('[data-action=\"journey.checkout\"]')")
    await stop("checkout-launcher")
    await begin(host, page)
    await stop("checkout-selection")
    for told, name in [(LOADING, "loading"), (UNFETCHED, "error")]:
        tell(host, told)
        await page.until(at(f"selection.{name}"))
        await stop(f"checkout-selection-{name}")
    tell(host, selection(MANY))
    await page.until("document.getElementById('checkout-search')")
    await stop("checkout-selection-search")
    for name, text in TAPS.items():
        tell(host, tap(name, text))
        await page.until(at(f"tap.{name}"))
        await stop(f"checkout-tap-{name}")
    tell(host, selection())
    await page.until(at("selection.ready"))
    tell(host, card())
    await page.until(at("card"))
    await stop("checkout-card-empty")
    tell(host, card(errors={"CARD_NUMBER": "This card number is not valid.", "POSTAL_CODE": "Please fill in this field."}))
    await page.until("document.querySelectorAll('[aria-invalid]').length === 2")
    await stop("checkout-card-errors")
    tell(host, selection())
    await page.until(at("selection.ready"))
    tell(host, card(FILLED, network=CB, networks=[VISA, CB], ready=True))
    await page.until("document.getElementById('network-visa')")
    await stop("checkout-card")
    tell(host, voucher("AB", "This voucher code is not valid."))
    await page.until(at("voucher"))
    await stop("checkout-voucher")
    for told, name in [(UNCODED, "challenge-link"), (PROCESSING, "processing"), (CHALLENGE, "challenge"), (FAILURE, "failure"),
                       (UNKNOWN, "unknown"), (SUCCESS, "success")]:
        tell(host, told)
        await page.until(at(name.removesuffix("-link")))
        await stop(f"checkout-{name}")
    await page.click("receipt.print")
    await page.until("!document.querySelector('[data-action=\"receipt.print\"]')")
    await stop("checkout-receipt")
    await finish(page)

#!/usr/bin/env python3
"""A customer at kiosk-host in Debian's Chromium: a passport, a payment with a loyalty pass, a receipt.

    host_tour.py ADDRESS [CUSTOMERS]

Prints what the page showed, and exits with 1 if a view never came or the page wrote to its console.
"""
import asyncio
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parents[2] / ".build" / "jsonschema"))
from host_kiosk import leave  # noqa: E402
from page_browser import Browser  # noqa: E402
from page_schema import faults  # noqa: E402


async def passport(page):
    await page.click("journey.passport")
    await page.view("key")
    await page.click("#method-can")
    await page.until("document.getElementById('field-can')")
    await page.click("#field-can")
    await page.type("123456")
    await page.click("key.submit")
    await page.view("hold")
    await page.view("result")
    await page.until("document.querySelector('.portrait')?.complete && document.querySelector('.portrait').naturalWidth")
    text = await page.eval("document.querySelector('main').innerText")
    await leave(page)
    return text


async def payment(page):
    await page.click("journey.payment")
    await page.view("order")
    await page.click("order.pay")
    await page.view("tap")
    await page.view("paid")
    await page.click("receipt.print")
    await page.until("!document.querySelector('[data-action=\"receipt.print\"]')")
    text = await page.eval("document.querySelector('main').innerText")
    await leave(page)
    return text


async def heap(page):
    await page.call("HeapProfiler.collectGarbage")
    return (await page.call("Runtime.getHeapUsage"))["usedSize"]


async def main(address, customers):
    browser = await Browser().start()
    try:
        page = await browser.page("about:blank")
        page.frames = []
        await page.call("Page.navigate", url=address)
        await page.view("launcher")
        print(await passport(page))
        print(await payment(page))
        frames, page.frames = page.frames, None
        wrong = sorted(set(faults(frames)))
        print(f"{len(frames)} messages, {len(wrong)} of them against the schema")
        for line in wrong:
            print(f"schema: {line}")
        start, before = time.monotonic(), await heap(page)
        for _ in range(customers):
            await payment(page)
        if customers:
            grown = await heap(page) - before
            print(f"{customers} customers: {time.monotonic() - start:.0f} s, heap {before} + {grown} bytes")
        # A second page is refused while the first is there; a page of another origin always.
        status = await page.eval(
            f"fetch('{address}bridge', {{headers: {{'X-Kiosk-Bridge': '1'}}}}).then((answer) => answer.status)")
        print(f"bridge over HTTP: {status}")
        await page.close()
        for line in page.console:
            print(f"console: {line}")
        return 1 if wrong or [line for line in page.console if "426" not in line] else 0
    finally:
        await browser.stop()


sys.exit(asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)))

"""Groups of checks of the page: each takes a Bench."""
import asyncio
import json
from pathlib import Path

from page_mock import MODULE, PAGE
from page_tour import tour

TREES = Path(__file__).resolve().parent / "page_trees"
SIZES = {"portrait": (1080, 1920), "landscape": (1920, 1080)}

# What is wrong with the view that is shown: keys, small targets, what is cut off, secrets where they do not belong.
INSPECT = r"""(async () => {
  const { keys } = await import('/strings.js');
  const faults = [];
  const root = document.documentElement;
  const shown = document.body.innerText;
  for (const key of keys) if (shown.includes(key)) faults.push(`the key ${key} is shown`);
  if (/undefined|null|\[object|\{\w+\}/.test(shown)) faults.push(`not a text: ${shown}`);
  if (root.scrollWidth > root.clientWidth) faults.push(`${root.scrollWidth} wide in ${root.clientWidth}`);
  for (const one of document.querySelectorAll('main button, footer button, dialog[open] button, input:not([type=radio]), textarea, summary, .choice')) {
    const box = one.getBoundingClientRect();
    if (box.width < 43.9 || box.height < 43.9) faults.push(`${one.outerHTML.slice(0, 80)} is ${box.width} x ${box.height}`);
    if (one.matches('button') && one.scrollWidth > one.clientWidth + 1) faults.push(`${one.textContent} is cut off`);
  }
  if (document.querySelectorAll('h1').length !== 1) faults.push('not one heading');
  if (localStorage.length + sessionStorage.length > 0 || document.cookie) faults.push('something is stored');
  return faults;
})()"""


async def inspect(bench, page, name):
    bench.faults += [f"{name}: {fault}" for fault in await page.eval(INSPECT)]


async def pictures(bench, folder):
    folder.mkdir(parents=True, exist_ok=True)
    host = await bench.host()
    page = await bench.page(host)

    async def stop(name):
        for size, (width, height) in SIZES.items():
            await page.resize(width, height)
            await asyncio.sleep(0.35)
            await page.screenshot(folder / f"{name}-{size}.png")

    await tour(host, page, stop)


GROUPS = {"pictures": pictures}
CHECKS = []

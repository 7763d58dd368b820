#!/usr/bin/env python3
"""Chromium with the managed policies of kiosk-host: the kiosk's page opens, and nothing else does.

    host_policies.py ADDRESS POLICIES

Give it mounts of its own (unshare -m): it mounts a folder for the policies.
"""
import asyncio
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from page_browser import Browser  # noqa: E402

FOLDER = Path("/etc/chromium/policies/managed")


class Other(http.server.BaseHTTPRequestHandler):
    """Some other program's page on this machine."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Other</title>another page")

    def log_message(self, *_):
        pass


async def main(address, policies):
    port = address.rstrip("/").rsplit(":", 1)[1]
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "policies", str(FOLDER)], check=True)
    managed = json.loads(Path(policies).read_text().replace("8780", port))
    # It works: with it nobody can drive this browser.
    managed.pop("DeveloperToolsAvailability")
    (FOLDER / "kiosk.json").write_text(json.dumps(managed))
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    browser = await Browser().start()
    try:
        page = await browser.page(address)
        await page.view("launcher")
        print("kiosk: open")
        for name, target in [("other", f"http://127.0.0.1:{other.server_port}/"), ("file", "file:///etc/hostname")]:
            answer = await page.call("Page.navigate", url=target)
            print(f"{name}: {answer.get('errorText', 'open')}")
    finally:
        await browser.stop()


asyncio.run(main(*sys.argv[1:3]))

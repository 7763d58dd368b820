#!/usr/bin/env python3
"""A printer of IPP that answers as it is told, which ippeveprinter does not: it refuses formats, forgets jobs, leaves.

    ipp_printer.py '{"formats": [...], "refused": [...], "reasons": [...], "jobs": [...]}'

Of jobs each is what Get-Job-Attributes is answered with, the last for ever: a state (RFC 8011, 5.3.7), a state with its
reason, a status code as {"status": 1030}, or "leave".  First it prints its port, then a line for each request.
"""
import http.server
import json
import os
import struct
import sys

SCRIPT = json.loads(sys.argv[1])
NAMES = {0x02: "Print-Job", 0x08: "Cancel-Job", 0x09: "Get-Job-Attributes", 0x0B: "Get-Printer-Attributes"}


def attribute(tag, name, values):
    """RFC 8010, 3.1.4 and 3.1.5."""
    data = b""
    for index, value in enumerate(values):
        name_bytes = name.encode() if index == 0 else b""
        if tag in (0x21, 0x23):
            value = struct.pack(">i", value)
        elif tag == 0x22:
            value = bytes([value])
        else:
            value = value.encode()
        data += bytes([tag]) + struct.pack(">H", len(name_bytes)) + name_bytes
        data += struct.pack(">H", len(value)) + value
    return data


def value_of(name, request):
    at = request.find(struct.pack(">H", len(name)) + name.encode())
    if at < 0:
        return ""
    at += 2 + len(name)
    length = struct.unpack(">H", request[at:at + 2])[0]
    return request[at + 2:at + 2 + length].decode()


def answer(operation, request):
    """The status and the attributes."""
    if operation == 0x0B:
        return 0, b"\x04" + (
            attribute(0x23, "printer-state", [3])
            + attribute(0x44, "printer-state-reasons", SCRIPT.get("reasons", ["none"]))
            + attribute(0x22, "printer-is-accepting-jobs", [1])
            + attribute(0x49, "document-format-supported", SCRIPT.get("formats", ["text/plain"])))
    if operation == 0x02:
        refused = value_of("document-format", request) in SCRIPT.get("refused", [])
        return (0x040A, b"") if refused else (0, b"\x02" + attribute(0x21, "job-id", [7]))
    if operation == 0x09:
        jobs = SCRIPT.get("jobs", [9])
        job = jobs.pop(0) if len(jobs) > 1 else jobs[0]
        if job == "leave":
            os._exit(0)
        if isinstance(job, dict):
            return job["status"], b""
        state, reason = job if isinstance(job, list) else (job, "none")
        return 0, b"\x02" + attribute(0x23, "job-state", [state]) + attribute(0x44, "job-state-reasons", [reason])
    return 0, b""


class Printer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"]))
        operation, number = struct.unpack(">HI", request[2:8])
        print(NAMES.get(operation, operation), value_of("document-format", request), flush=True)
        status, attributes = answer(operation, request)
        body = struct.pack(">HHI", 0x0200, status, number) + b"\x01" + (
            attribute(0x47, "attributes-charset", ["utf-8"])
            + attribute(0x48, "attributes-natural-language", ["en"]) + attributes + b"\x03")
        self.send_response(200)
        self.send_header("Content-Type", "application/ipp")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Printer)
print(server.server_port, flush=True)
server.serve_forever()

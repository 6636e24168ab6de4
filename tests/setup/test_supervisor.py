"""Everything comes up, stays up, and goes down without leaving a process behind. Design 2, 10; promise P9."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SIGNER = """
import asyncio, os
async def serve():
    server = await asyncio.start_unix_server(lambda reader, writer: writer.close(), os.environ["SERVICE_SIGN_SOCKET"])
    await server.serve_forever()
asyncio.run(serve())
"""
API = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200), self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(os.environ["SERVICE_API_PORT"])), Answer).serve_forever()
"""
# The real supervisor with two small stand-ins for the programs it supervises.
RUN = """
import asyncio, os, sys
from custody.cli import settings, supervisor
async def run():
    found = supervisor.Supervisor(settings.load(os.environ))
    supervisor.stop_on_signals(found)
    try:
        await found.up({"signer": "stand_in_signer", "api": "stand_in_api"})
        print("pids", *(child.process.pid for child in found._children.values()), found._postgres.process.pid, flush=True)
        await found.stopping.wait()
    finally:
        await found.down()
asyncio.run(run())
"""


@pytest.fixture
def running(open_folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A supervisor that is up, and the pids of its children."""
    (open_folder / "stand_in_signer.py").write_text(SIGNER)
    (open_folder / "stand_in_api.py").write_text(API)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "PATH": os.defpath, "PYTHONPATH": f"{open_folder}:{Path.cwd()}", "SERVICE_HOME": str(open_folder / "home"),
        "SERVICE_API_PORT": str(port), "STAND_INS": str(open_folder),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", RUN], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    yield process, [int(pid) for pid in re.findall(r"\d+", line)]
    process.kill()
    process.communicate()

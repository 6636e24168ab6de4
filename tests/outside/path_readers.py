"""Real servers that answer with the path that they read: each decodes it in its own way before it looks for a route."""

import asyncio
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import tornado.web
from aiohttp import web
from werkzeug import serving
from werkzeug.wrappers import Request, Response

from tests.fixtures.eventually import eventually
from tests.outside.processes import READY, die_with, running
from tests.outside.programs import NGINX, install

_NODE = """
import {createServer} from 'node:http';
const server = createServer((request, answer) => {
  const read = [];
  const keep = (how) => { try { read.push(how()); } catch { /* refused in this way */ } };
  keep(() => decodeURIComponent(new URL(request.url, 'http://site').pathname));
  keep(() => decodeURIComponent(request.url));
  keep(() => decodeURIComponent(decodeURIComponent(request.url)));
  answer.end(JSON.stringify(read));
});
server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
"""
_NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; default_type text/plain;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen unix:{folder}/merged; location / {{ return 200 "$uri"; }} }}
  server {{ listen unix:{folder}/plain; merge_slashes off; location / {{ return 200 "$uri"; }} }}
}}
"""


class Reader:
    """One server that is asked how it reads a path."""

    def __init__(self, name: str, connect: Callable[[], http.client.HTTPConnection], *, listed: bool = False) -> None:
        self.name, self._connect, self._listed = name, connect, listed
        self._connection = connect()

    def read(self, path: str) -> list[str]:
        """Ask what the server makes of a path; nothing where it refuses the request or sends the client elsewhere."""
        self._connection.putrequest("GET", path, skip_host=True)
        self._connection.putheader("Host", "site")
        self._connection.endheaders()
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.will_close:
            self._connection.close()
        if answer.status != http.client.OK:
            return []
        text = body.decode(errors="replace")
        return msgspec.json.decode(text, type=list[str]) if self._listed else [text]

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class _OnSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("site")
        self._path = path

    def connect(self) -> None:
        """Reach the server by its file."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


@contextmanager
def path_readers() -> Iterator[list[Reader]]:
    """Start all of them."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cn-")))
        stack.enter_context(_nginx(folder))
        found = [Reader(f"nginx, {name}", lambda name=name: _OnSocket(folder / name)) for name in ("merged", "plain")]
        node = [shutil.which("node") or "node", "--input-type=module", "-e", _NODE]
        started = {name: [sys.executable, "-m", "tests.outside.path_readers", name] for name in _SERVERS}
        for name, command in {**started, "node": node}.items():
            host, _, port = stack.enter_context(running(command)).partition(":")
            found.append(
                Reader(name, lambda a=host, b=int(port): http.client.HTTPConnection(a, b), listed=name == "node")
            )
        for reader in found:
            stack.callback(reader.close)
        yield found


@contextmanager
def _nginx(folder: Path) -> Iterator[None]:
    (folder / "nginx.conf").write_text(_NGINX.format(folder=folder))
    process = subprocess.Popen(
        [str(install(NGINX)), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")],
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
    )
    try:
        eventually(lambda: (folder / "plain").exists() or process.poll() is not None)
        assert process.poll() is None, (folder / "error.log").read_text()
        yield
    finally:
        process.terminate()
        process.wait(60)


def _http_server() -> None:
    """Python's own, which looks for a file."""

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # It sends head and body apart: else the body waits 40 ms for the other side's word that the head has come.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = ("/" + self.translate_path(self.path)[len(os.getcwd()) :].lstrip("/")).encode(errors="replace")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(f"{READY}127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


def _werkzeug() -> None:
    """A WSGI server, which decodes before it asks the application."""

    @Request.application
    def answer(request: Request) -> Response:
        return Response(request.path)

    server = serving.make_server("127.0.0.1", 0, answer)
    print(f"{READY}127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


def _aiohttp() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    async def serve() -> None:
        application = web.Application()
        application.router.add_get("/{rest:.*}", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(f"{READY}127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


def _tornado() -> None:
    class Answer(tornado.web.RequestHandler):
        def get(self, rest: str) -> None:
            self.write("/" + rest)

    async def serve() -> None:
        server = tornado.web.Application([(r"/(.*)", Answer)]).listen(0, "127.0.0.1")
        port = next(iter(server._sockets.values())).getsockname()[1]
        print(f"{READY}127.0.0.1:{port}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


_SERVERS: dict[str, Callable[[], Any]] = {
    "http.server": _http_server,
    "werkzeug": _werkzeug,
    "aiohttp": _aiohttp,
    "tornado": _tornado,
}

if __name__ == "__main__":
    _SERVERS[sys.argv[1]]()

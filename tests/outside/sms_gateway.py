"""A gateway for text messages: takes `POST {"to": "+...", "text": "..."}` and keeps it for the test to read."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from tests.fixtures.eventually import PATIENCE_SECONDS, eventually
from tests.outside.codes import code_in


class Sms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message, as it was posted."""

    to: str
    text: str


class SmsGateway:
    """An SMS gateway: its address, its answers, its requests; only what it answered with 2xx counts as sent."""

    def __init__(self, address: str) -> None:
        self.url = f"http://{address}/messages"
        self.status = 200
        self.asked: list[tuple[dict[str, str], bytes]] = []
        self.sent: list[Sms] = []
        self._answering = threading.Event()
        self._answering.set()

    def hang(self) -> None:
        """Answer nobody until `go_on`."""
        self._answering.clear()

    def go_on(self) -> None:
        """Answer again, also those who wait."""
        self._answering.set()

    def count(self, number: str) -> int:
        """Count the messages to a number: what `after` means in the other question."""
        return len(self.to(number))

    def to(self, number: str) -> list[Sms]:
        """Return the messages to a number, in order."""
        return [sms for sms in self.sent if sms.to == number]

    def code_for(self, number: str, after: int = 0, seconds: float = PATIENCE_SECONDS) -> str:
        """The six digits in the message that follows the first `after` ones, as soon as it is there."""
        return code_in(eventually(lambda: self.to(number)[after:], seconds=seconds)[0].text)

    def answer(self, headers: dict[str, str], content: bytes) -> int:
        """Keep a message, unless it is none or the test wants it refused; give the status."""
        self.asked.append((headers, content))
        self._answering.wait()
        try:
            sms = msgspec.json.decode(content, type=Sms)
        except msgspec.DecodeError:
            return 400
        if self.status < 300:
            self.sent.append(sms)
        return self.status


@contextmanager
def running_sms_gateway() -> Iterator[SmsGateway]:
    """Start one in this process."""

    class Connection(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(gateway.answer(headers, self.rfile.read(int(headers["content-length"]))))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        gateway = SmsGateway(f"127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield gateway
        finally:
            gateway.go_on()
            server.shutdown()
            thread.join()

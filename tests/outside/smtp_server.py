"""A real mail server as a process of its own, which keeps every mail for the test to read."""

import asyncio
import contextlib
import os
import signal
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote

import msgspec
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.fixtures.eventually import PATIENCE_SECONDS, eventually
from tests.outside.certificates import Authority
from tests.outside.codes import code_in
from tests.outside.processes import READY, running

# `starttls` offers nothing before STARTTLS and takes mail only after AUTH; `tls` is encrypted from the first byte.
Security = Literal["plain", "starttls", "tls"]
# What happens to a recipient: taken, 550, 451, no answer until the mode changes, the connection breaks.
Mode = Literal["accept", "refuse", "busy", "hang", "close"]
LOGIN, PASSWORD = "custody@mail.test", "the mail server's own password"
_REFUSALS = {"refuse": "550 5.1.1 No such mailbox", "busy": "451 4.3.0 Try again later"}


class Mail(msgspec.Struct, frozen=True):
    """One that was taken: its envelope, its content as it came, and how it came."""

    sender: str
    recipients: tuple[str, ...]
    content: str
    encrypted: bool
    login: str | None

    @property
    def message(self) -> EmailMessage:
        """Its headers and parts."""
        return message_from_string(self.content, policy=default)

    @property
    def text(self) -> str:
        """Text that a person reads."""
        body = self.message.get_body(("plain",))
        assert body, f"no plain text in {self.content!r}"
        return str(body.get_content())


class Mailbox:
    """A mail server: its address, the mails that it keeps, and the behaviour that a test sets."""

    def __init__(self, folder: Path, address: str, security: Security) -> None:
        host, _, port = address.rpartition(":")
        self.host, self.port, self.security = host, int(port), security
        self.ca_file = folder / "ca.pem"
        self._folder = folder

    @property
    def url(self) -> str:
        """The setting that leads here, with the credentials where it wants some."""
        known = "" if self.security == "plain" else f"{quote(LOGIN, safe='')}:{quote(PASSWORD, safe='')}@"
        return f"{'smtps' if self.security == 'tls' else 'smtp'}://{known}{self.host}:{self.port}"

    def be(self, mode: Mode) -> None:
        """From the next recipient on."""
        new = self._folder / "mode.new"
        new.write_text(mode)
        new.replace(self._folder / "mode")

    def has_refused(self, address: str) -> bool:
        """Tell whether a mail to this address was not taken."""
        return address in (self._folder / "refused").read_text().split()

    def mails(self, address: str | None = None) -> list[Mail]:
        """Return the mails to an address, or to anybody, in order."""
        kept = [_read(line) for line in (self._folder / "mails").read_bytes().splitlines(True) if line.endswith(b"\n")]
        return [mail for mail in kept if address is None or address in mail.recipients]

    def count(self, address: str) -> int:
        """Count the mails to an address: what `after` means in the other questions."""
        return len(self.mails(address))

    def mail_for(self, address: str, after: int = 0, seconds: float = PATIENCE_SECONDS) -> Mail:
        """The mail that follows the first `after` ones, as soon as it is there."""
        return eventually(lambda: self.mails(address)[after:], seconds=seconds)[0]

    def code_for(self, address: str, after: int = 0, seconds: float = PATIENCE_SECONDS) -> str:
        """The six digits in that mail."""
        return code_in(self.mail_for(address, after, seconds).text)


def _read(line: bytes) -> Mail:
    return msgspec.json.decode(line, type=Mail)


@contextmanager
def running_mail_server(security: Security = "plain") -> Iterator[Mailbox]:
    """Start one that accepts everything; a client trusts it through `ca_file` and signs in as LOGIN with PASSWORD."""
    with tempfile.TemporaryDirectory(prefix="cm-") as name:
        folder = Path(name)
        (folder / "mails").touch()
        (folder / "refused").touch()
        (folder / "mode").write_text("accept")
        with running([sys.executable, "-m", "tests.outside.smtp_server", folder, security]) as address:
            yield Mailbox(folder, address, security)


class _Keeper:
    """Decides on each recipient by the mode, and writes each mail down before it is acknowledged."""

    def __init__(self, folder: Path) -> None:
        self._mode = folder / "mode"
        self._mails = (folder / "mails").open("ab", buffering=0)

    async def handle_RCPT(
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        while (mode := self._mode.read_text()) == "hang":
            await asyncio.sleep(0.05)
        if mode != "accept":
            with (self._mode.parent / "refused").open("a") as refused:
                refused.write(f"{address}\n")
        if mode == "close":
            server.transport.abort()
        if mode != "accept":
            return _REFUSALS.get(mode, "421 4.3.2 Goodbye")
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        proven: Any = session.auth_data
        mail = Mail(
            sender=envelope.mail_from or "",
            recipients=tuple(envelope.rcpt_tos),
            content=bytes(envelope.content or b"").decode(),
            encrypted=server.transport.get_extra_info("sslcontext") is not None,
            login=proven.login.decode() if proven else None,
        )
        self._mails.write(msgspec.json.encode(mail) + b"\n")
        return "250 OK"


def _knows(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, shown: Any) -> AuthResult:
    right = LoginPassword(LOGIN.encode(), PASSWORD.encode())
    return AuthResult(success=shown == right, handled=False, auth_data=shown)


async def _serve(folder: Path, security: Security) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(folder).leaf("mail", "localhost"))
    keeper, guarded = _Keeper(folder), security != "plain"

    def session() -> SMTP:
        return SMTP(
            keeper,
            hostname="localhost",
            ident="mail",
            authenticator=_knows,
            auth_required=guarded,
            auth_require_tls=security == "starttls",
            require_starttls=security == "starttls",
            tls_context=context if security == "starttls" else None,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=context if security == "tls" else None)
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    print(f"{READY}localhost:{server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()
    # Sessions that hang must not hold the end up.
    os._exit(0)


if __name__ == "__main__":
    assert sys.argv[2] in get_args(Security)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(Path(sys.argv[1]), sys.argv[2]))  # type: ignore[arg-type]

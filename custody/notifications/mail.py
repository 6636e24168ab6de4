"""Mail over SMTP: `smtp://user:password@host:587` (STARTTLS where it is offered) or `smtps://...:465`.

A code and a password go over TLS alone, because an attacker in between could remove the offer of STARTTLS. A code may
go in plain to a server on this machine, and where it is allowed: in development.
"""

import asyncio
import smtplib
import ssl
from concurrent.futures import ThreadPoolExecutor
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import make_msgid
from ipaddress import ip_address
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from custody.kit.logs import logger
from custody.kit.outside import Problem
from custody.notifications.background import Background

log = logger(__name__)
SECONDS = 15
_AT_ONCE = 4


class NoTls(Exception):
    """The mail server offers no TLS, and it is wanted."""


class OtherRecipient(Exception):
    """The header would name somebody else than the address."""


class Letter(msgspec.Struct, frozen=True):
    """A mail's text. The subject is ours alone: what others named themselves stands in the text, never in a header.

    `page`: the same as HTML, in which everything that others wrote is escaped.
    """

    subject: str
    text: str
    page: str | None = None

    def __repr__(self) -> str:
        return "Letter()"


class Mail:
    """Sends codes and letters by mail. `?from=` of the address names the sender; a failure is logged, never shown."""

    def __init__(self, url: str, public_url: str, *, plain: bool = False) -> None:
        parts = urlsplit(url)
        self._tls = parts.scheme == "smtps"
        self._host = parts.hostname or ""
        self._port = parts.port or (465 if self._tls else 587)
        self._user, self._password = unquote(parts.username or ""), unquote(parts.password or "")
        host = urlsplit(public_url).hostname or "localhost"
        self._from = (parse_qs(parts.query).get("from") or [f"custody@{host}"])[0]
        self._plain = not self._user and (plain or is_loopback(self._host))
        if self._plain and not self._tls and not is_loopback(self._host):
            log.warning("codes may go over the network in plain: the mail server is not made to use TLS")
        self.public_url = public_url
        self._background = Background("mail")
        # Threads of its own: a mail server that hangs must not hold up what else blocks, such as looking up names.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "mail")

    def __repr__(self) -> str:
        return "Mail()"

    def send_code(self, address: str, code: str) -> None:
        """Begin to mail a sign-in code."""
        text = (
            f"Your code to sign in at {self.public_url} is\n\n    {code}\n\n"
            "It works once, for ten minutes. If you did not ask for it, you can ignore this mail.\n"
        )
        self.send(address, Letter(f"{code} is your sign-in code", text))

    def send(self, address: str, letter: Letter) -> None:
        """Begin to mail a letter."""
        self._background.send(self._send_in_thread(address, letter))

    async def deliver(self, address: str, letter: Letter, *, tag: str) -> Problem | None:
        """Mail a letter and wait for the server; a word for what went wrong. The same tag names the same mail."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._send, address, letter, tag)
        except (NoTls, ssl.SSLError):
            return "tls"
        except TimeoutError:
            return "timeout"
        except (smtplib.SMTPException, OtherRecipient):
            return "closed"
        except OSError:
            return "connect"
        return None

    async def close(self) -> None:
        """Wait for mails under way, a little."""
        await self._background.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _send_in_thread(self, address: str, letter: Letter) -> None:
        # A thread, because the standard library's client blocks.
        await asyncio.get_running_loop().run_in_executor(self._threads, self._send, address, letter)

    def _write(self, address: str, letter: Letter, tag: str | None = None) -> EmailMessage:
        mail = EmailMessage()
        mail["From"], mail["Subject"] = self._from, letter.subject
        mail["To"] = Address(addr_spec=address)
        # The library understands encoded words in places where the standard has none.
        if [one.addr_spec for one in mail["To"].addresses] != [address]:
            raise OtherRecipient
        domain = self._from.rpartition("@")[2]
        mail["Message-ID"] = make_msgid(domain=domain) if tag is None else f"<{tag}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(letter.text)
        if letter.page is not None:
            mail.add_alternative(letter.page, subtype="html")
        return mail

    def _send(self, address: str, letter: Letter, tag: str | None = None) -> None:
        mail = self._write(address, letter, tag)
        secure = ssl.create_default_context()
        kind = smtplib.SMTP_SSL if self._tls else smtplib.SMTP
        given = {"context": secure} if self._tls else {}
        with kind(self._host, self._port, timeout=SECONDS, **given) as server:  # type: ignore[arg-type]
            server.ehlo()
            if not self._tls and server.has_extn("starttls"):
                server.starttls(context=secure)
                server.ehlo()
            elif not self._tls and not self._plain:
                raise NoTls
            if self._user:
                server.login(self._user, self._password)
            server.send_message(mail, to_addrs=[address])


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine, whatever a name server says."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

"""One question to a holder by HTTP. Nothing of it is endless: where it goes, how long it takes, how much comes back."""

import http.client
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

import msgspec

from openers import deadline
from openers.outcomes import Away, BadSettings

# What holders say is below 2 KiB, wrapped keys among it.
MAX_ANSWER = 64 * 1024
# For each step, so that the holder after one that is silent is asked, too.
SECONDS = 6.0


class Answer(msgspec.Struct, frozen=True):
    """The bytes that came back. They may have a key in them, so they are never shown."""

    status: int
    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"Answer({self.status})"


def ask(url: str, body: bytes, headers: Mapping[str, str], ca_file: str | None = None) -> Answer:
    """POST this once and return the answer, of whatever status; Away for none, and for one that goes elsewhere."""
    deadline.begin()
    parts = check(url)
    connection = _connection(parts, ca_file)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, body, dict(headers))
        came = connection.getresponse()
        content = came.read(MAX_ANSWER + 1)
    except (OSError, http.client.HTTPException) as problem:
        raise Away(f"{parts.netloc} does not answer: {_reason(problem)}.") from None
    finally:
        connection.close()
    if len(content) > MAX_ANSWER:
        raise Away(f"{parts.netloc} answered more than any holder does: something else answers there.")
    if 300 <= came.status < 400:
        # The other address would be given our credentials.
        raise Away(f"{parts.netloc} sends us to another address, and nobody goes there: name that one in the settings.")
    return Answer(came.status, {name.lower(): value for name, value in came.getheaders()}, content)


def read[Said](answer: Answer, said: type[Said], who: str) -> Said:
    """The body of an answer; Away where it is no such answer, for then another program answers there."""
    try:
        return msgspec.json.decode(answer.body, type=said)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise Away(f"What answers at the address of {who} is something else.") from None


def check(url: str) -> SplitResult:
    """Take an address apart; BadSettings where a key or a credential would cross a network that others read."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadSettings("The address of the holder is not one.") from None
    if not url.isascii() or not url.isprintable() or " " in url or not host or "@" in parts.netloc:
        raise BadSettings("The address of the holder is not one: it is https://HOST, without a user or a blank.")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise BadSettings(f"The holder at {host} is asked by https alone, for the key of the file is in the answer.")
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _connection(parts: SplitResult, ca_file: str | None) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=SECONDS)
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as problem:
        raise BadSettings(f"The certificates in {ca_file} cannot be read: {_reason(problem)}.") from None
    return http.client.HTTPSConnection(host, parts.port, timeout=SECONDS, context=context)


def _reason(problem: Exception) -> str:
    match problem:
        case ssl.SSLCertVerificationError():
            return f"its certificate is refused ({problem.verify_message})"
        case ssl.SSLError():
            return f"TLS failed ({problem.reason})"
        case TimeoutError():
            return "it took too long"
        case OSError(strerror=str(said)):
            return said
        case _:
            return f"it broke off or does not speak HTTP ({type(problem).__name__})"

"""Requests and how their answers are read, without any sending: both clients stand on this.

Ids are looked at before a path is made of them, answers are bounded, and a request is repeated only where its key makes
that safe, or where it changes nothing.
"""

import hashlib
import ipaddress
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

from custody_sdk._types import OPERATIONS
from custody_sdk.errors import AGAIN, NODES_SAY, BadArgument, OutcomeUnknown, VaultError, error_of

MAX_ANSWER_BYTES: Final = 8 * 2**20
# Integers beyond this are rounded by readers of JSON in other languages.
SAFE: Final = 2**53 - 1
_PAUSES: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_AGENT: Final = re.compile(r"\.*[A-Za-z0-9_\-:][A-Za-z0-9_\-.:]{0,127}")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NAME: Final = re.compile(r"[!-~]{3,64}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_\-.]{1,8192}")


@dataclass(frozen=True, slots=True)
class Ask[T]:
    """A request, and how the data of its answer is read."""

    operation: str
    read: Callable[[Any], T]
    agent: str = ""
    tx_id: str = ""
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    # The name that makes a repetition safe; without one a change is never repeated.
    key: str | None = None

    @property
    def name(self) -> dict[str, str]:
        """The name to repeat it by, where nobody chose one."""
        return {"name": str(self.body["referenceId"])} if self.body and "referenceId" in self.body else {}

    @property
    def method(self) -> str:
        """The method of HTTP."""
        return OPERATIONS[self.operation][0]

    @property
    def path(self) -> str:
        """The path, of ids that cannot lead to another one."""
        path = OPERATIONS[self.operation][1]
        if "{agentId}" in path:
            path = path.replace("{agentId}", quote(agent_id(self.agent), safe=""))
        return path.replace("{txId}", transaction_id(self.tx_id)) if "{txId}" in path else path

    @property
    def changes(self) -> bool:
        """True if it could do anything."""
        return self.method != "GET" and self.operation != "simulateOrder"

    @property
    def headers(self) -> dict[str, str]:
        """The headers besides the credential."""
        # Answers are bounded as they come, and a small one that unpacks into a large one would not be.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        headers |= {"Content-Type": "application/json"} if self.body is not None else {}
        return headers | ({"Idempotency-Key": self.key} if self.key else {})

    @property
    def content(self) -> bytes | None:
        """The body."""
        return None if self.body is None else json.dumps(self.body, separators=(",", ":"), allow_nan=False).encode()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `status` 0 and a word for why where there was none."""

    status: int
    retry_after: int = 0
    body: bytes = field(default=b"", repr=False)
    absent: str = ""

    def envelope(self) -> dict[str, Any]:
        """Return the envelope, or an empty one where it is none."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) and isinstance(found.get("ok"), bool) and "data" in found else {}


class Tries:
    """The attempts of one request: when the next one is, and what came of the last."""

    def __init__(self, patience: float) -> None:
        self._ends = time.monotonic() + patience
        self._count = 0

    def pause[T](self, ask: Ask[T], answer: Answer) -> float | None:
        """Return the seconds until the next attempt, or None if this answer is the last."""
        if ask.changes and ask.key is None:
            return None
        said = answer.envelope()
        code = str(data.get("code")) if isinstance(data := said.get("data"), dict) else ""
        again = answer.status == 429 or code == "idempotency_in_flight"
        again = again or (answer.status in (0, 500, 502, 503) and code not in NODES_SAY)
        if not again:
            return None
        pause = max(_PAUSES[min(self._count, len(_PAUSES) - 1)], float(answer.retry_after))
        self._count += 1
        return pause if time.monotonic() + pause < self._ends else None


def outcome[T](ask: Ask[T], answer: Answer) -> T:
    """Return what was asked for, or raise what came instead."""
    said = answer.envelope()
    if answer.status == 0 or not said:
        why = answer.absent or "The answer is none of this service's."
        if ask.changes:
            raise OutcomeUnknown(answer.status, "no_answer", f"{why} {AGAIN}", ask.name)
        raise VaultError(answer.status, "no_answer", why)
    if answer.status != 200 or said["ok"] is not True:
        raise error_of(answer.status, said, answer.retry_after, ask.name, change=ask.changes)
    try:
        return ask.read(said["data"])
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise OutcomeUnknown(answer.status, "no_answer", f"The answer lacks what was asked for. {AGAIN}", ask.name)


def read_seconds(text: str) -> int:
    """Read the header Retry-After; what is no number of seconds is none."""
    return min(int(text), 86_400) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def base_of(url: str, *, allow_http: bool) -> str:
    """Check the address of a service, so that a token goes nowhere in the clear."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        # A port that is none raises.
        good = (
            bool(host) and parts.port != 0 and not (parts.username or parts.password or parts.query or parts.fragment)
        )
    except ValueError:
        good, host, parts = False, "", urlsplit("")
    if not good or parts.scheme not in ("http", "https"):
        raise BadArgument(
            0, "bad_url", "url must be like https://custody.example.com, without user, query or fragment."
        )
    if parts.scheme == "http" and not allow_http and not _is_here(host):
        raise BadArgument(0, "bad_url", "url is http to another machine, where anybody reads the token: use https.")
    return url.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_of(text: str) -> str:
    """Check a token's letters; what is wrong with it is said without it."""
    text = text.strip()
    if not _TOKEN.fullmatch(text):
        raise BadArgument(0, "bad_token", "token must be an agent's token, as `POST /agents/{agentId}/token` gives it.")
    return text


def agent_id(text: str) -> str:
    """Check an agent's id."""
    if not isinstance(text, str) or not _AGENT.fullmatch(text) or len(text) > 128:
        raise BadArgument(
            0, "bad_path", "agent must be an id: letters, digits, `_`, `-`, `.`, `:`, at most 128 of them."
        )
    return text


def transaction_id(text: str) -> str:
    """Check a transaction's id."""
    if not isinstance(text, str) or not _UUID.fullmatch(text):
        raise BadArgument(0, "bad_path", "tx_id must be a transaction's id: a UUID in lower case.")
    return text


def payment_name(name: str) -> str:
    """Check a name, which is also the reference that people see."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadArgument(
            0,
            "bad_name",
            "name must be your name for THIS payment, such as invoice-4711: 3 to 64 printable characters, no spaces. "
            "Use it again only to repeat this same payment: then it is paid once.",
        )
    return name


def key_of(agent: str, operation: str, name: str) -> str:
    """Return the idempotency key of a name: the same in every client, on every machine."""
    return "sdk-" + hashlib.sha256("\n".join((agent, operation, name)).encode()).hexdigest()[:48]

"""Access tokens that a provider gives for a route's secret: asked for once however many wait, and renewed early.

Guarantees: the provider's endpoint is dialled like every upstream, at judged addresses only; its answer is bounded; a
token is used for the secret's version and route that it was made of, and no longer than it says.
"""

import asyncio
import math
import re
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from custody.kit import clock
from custody.kit.cache import Cache
from custody.kit.errors import CustodyError
from custody.kit.logs import logger
from custody.kit.outside import Fetched, Fetcher, NoAnswer
from custody.kit.tasks import leave_to_caller, spawn
from custody.protocol.signer.secrets import TokenRequest

log = logger("proxy")
MAX_ANSWER = 64 * 1024
MAX_TOKEN = 16 * 1024
MAX_MINTED = 1_000
# A token that is used this long before its end, or in its last fifth, is renewed meanwhile; one that says nothing lasts
# so long. One that an API refuses is asked for again, if it is not quite new.
EARLY_SECONDS, UNSAID_SECONDS, LONGEST_SECONDS, NEW_SECONDS = 120.0, 300.0, 86_400.0, 60.0
# However short it says that it lasts, nobody asks for another one sooner.
LEAST_SECONDS = 5.0
# After a refusal nobody asks again for so long.
PAUSE_SECONDS = 5.0
# RFC 6750, 2.1, and what providers send beside it.
_TOKEN = re.compile(rf"[\x21-\x7e]{{1,{MAX_TOKEN}}}")
Key = tuple[Any, ...]


class NotMinted(CustodyError):
    """The provider gave no access token for the credential of this route."""

    status = 502


class _Answer(msgspec.Struct, frozen=True):
    """Of RFC 6749 5.1, and of GitHub's answer, what is used; providers are not strict about the rest."""

    access_token: Any = None
    token: Any = None
    id_token: Any = None
    expires_in: Any = None
    expires_at: Any = None

    def __repr__(self) -> str:
        return "_Answer()"


class Minted(msgspec.Struct, frozen=True):
    """An access token with its start and its end, in seconds of the monotonic clock."""

    key: Key
    token: str
    since: float
    until: float

    def __repr__(self) -> str:
        return f"Minted({self.until})"

    @property
    def fresh(self) -> bool:
        """True while nobody need ask for the next one."""
        return time.monotonic() < self.until - min(EARLY_SECONDS, (self.until - self.since) / 5)

    @property
    def usable(self) -> bool:
        """True until its end."""
        return time.monotonic() < self.until


class Minter:
    """The access tokens of this process."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._known: Cache[Key, Minted] = Cache(MAX_MINTED)
        self._refused: Cache[Key, float] = Cache(MAX_MINTED, PAUSE_SECONDS)
        self._asking: dict[Key, asyncio.Task[Minted]] = {}

    async def token(self, key: Key, request: TokenRequest, tenant: str) -> Minted:
        """The token for a key, which names the secret's version and the route; NotMinted if there is none.

        One that ends soon is used on only where there is no other.
        """
        known = self._known.get(key)
        if known is not None and known.fresh:
            return known
        usable = known if known is not None and known.usable else None
        if self._refused.get(key) is not None:
            if usable is not None:
                return usable
            raise NotMinted
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = spawn(self._ask(key, request, tenant), "mint", on_failure=leave_to_caller)
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        try:
            # Shielded: a client that goes away does not take the answer from the others.
            return await asyncio.shield(asking)
        except NotMinted:
            if usable is not None:
                return usable
            raise

    def forget(self) -> None:
        """Let go of tokens that have ended."""
        for key in self._known.keys_where(lambda minted: not minted.usable):
            self._known.drop(key)

    def distrust(self, refused: Minted) -> bool:
        """Use a token no more that its API refused, unless it is so new that another would be refused as well."""
        if time.monotonic() - refused.since < NEW_SECONDS:
            return False
        if self._known.get(refused.key) is refused:
            self._known.drop(refused.key)
        return True

    async def _ask(self, key: Key, request: TokenRequest, tenant: str) -> Minted:
        problem = "unreadable"
        try:
            answer = await self._fetcher.post(
                request.url, request.body, tenant=tenant, most_bytes=MAX_ANSWER, headers=request.headers
            )
            if 200 <= answer.status < 300:
                minted = _read(key, answer)
                self._known.put(key, minted)
                return minted
            problem = f"status {answer.status}"
        except NoAnswer as no_answer:
            problem = no_answer.problem
        except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError):
            # Nothing of an answer that holds a token is shown or logged.
            pass
        self._refused.put(key, time.monotonic())
        log.warning("a provider gave no token", extra={"tenant": tenant, "route": key[1], "reason": problem})
        raise NotMinted


def _read(key: Key, answer: Fetched) -> Minted:
    said = msgspec.json.decode(answer.body, type=_Answer)
    token = next((one for one in (said.access_token, said.token, said.id_token) if isinstance(one, str) and one), "")
    if not _TOKEN.fullmatch(token):
        raise ValueError
    seconds = UNSAID_SECONDS
    if isinstance(said.expires_in, int | float | str):
        seconds = float(said.expires_in)
    elif isinstance(said.expires_at, str):
        end = datetime.fromisoformat(said.expires_at)
        seconds = ((end if end.tzinfo else end.replace(tzinfo=UTC)) - clock.now()).total_seconds()
    if not math.isfinite(seconds):
        raise ValueError
    now = time.monotonic()
    return Minted(key, token, now, now + min(max(seconds, LEAST_SECONDS), LONGEST_SECONDS))

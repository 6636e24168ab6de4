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
from urllib.parse import parse_qs

import msgspec

from custody.kit import clock
from custody.kit.cache import Cache
from custody.kit.errors import CustodyError
from custody.kit.logs import logger
from custody.kit.outside import Fetched, Fetcher, NoAnswer
from custody.kit.tasks import leave_to_caller, spawn
from custody.protocol.signer.secrets import TokenRequest
from proxy_addon.refreshing import Refresh

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
_REFRESH_TOKEN = re.compile(r"[\x20-\x7e]{1,4096}")
_SERVERS_FAULT = 500
Key = tuple[Any, ...]


class NotMinted(CustodyError):
    """The provider gave no access token for the credential of this route."""

    status = 502


class GrantEnded(NotMinted):
    """The provider no longer takes the refresh token: somebody must authorise again."""


class _Answer(msgspec.Struct, frozen=True):
    """Of RFC 6749 5.1, and of GitHub's answer, what is used; providers are not strict about the rest."""

    access_token: Any = None
    token: Any = None
    id_token: Any = None
    refresh_token: Any = None
    error: Any = None
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
        self._refused: Cache[Key, type[NotMinted]] = Cache(MAX_MINTED, PAUSE_SECONDS)
        self._asking: dict[Key, asyncio.Task[Minted]] = {}

    async def token(self, key: Key, request: TokenRequest | Refresh, tenant: str) -> Minted:
        """The token for a key, which names the secret's version and the route; NotMinted if there is none.

        One that ends soon is used on only where there is no other.
        """
        known = self._known.get(key)
        if known is not None and known.fresh:
            return known
        usable = known if known is not None and known.usable else None
        if (refused := self._refused.get(key)) is not None:
            if usable is not None:
                return usable
            raise refused
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

    async def _ask(self, key: Key, request: TokenRequest | Refresh, tenant: str) -> Minted:
        ended: type[NotMinted] = NotMinted
        problem = "unreadable"
        try:
            if isinstance(request, Refresh):
                minted = await self._refresh(key, request, tenant)
            else:
                minted = _read(key, _insist(await self._fetch(request, tenant)))
        except NoAnswer as no_answer:
            problem = no_answer.problem
        except CustodyError as refusal:
            # Of the signer, or others are asking for it.
            problem = refusal.code
        except _Refused as refused:
            problem, ended = (
                f"status {refused.status}",
                GrantEnded if refused.ended and isinstance(request, Refresh) else NotMinted,
            )
        except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError):
            # Nothing of an answer that holds a token is shown or logged.
            pass
        else:
            self._known.put(key, minted)
            return minted
        self._refused.put(key, ended)
        log.warning("a provider gave no token", extra={"tenant": tenant, "route": key[1], "reason": problem})
        raise ended

    async def _refresh(self, key: Key, refresh: Refresh, tenant: str) -> Minted:
        """The token of a refresh that nobody else makes meanwhile; what the provider gave beside it is kept first."""
        begun = await refresh.begin()
        # Until the provider has said so, nobody knows whether it used the refresh token up.
        unknown, following = True, None
        try:
            answer = await self._fetch(begun.request, tenant)
            unknown = answer.status >= _SERVERS_FAULT
            # First: it must be kept even if what came beside it cannot be used.
            following = _following(begun.request, _insist(answer))
            minted = _read(key, answer)
        except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError):
            unknown = True
            raise
        finally:
            await refresh.end(begun, following, unknown=unknown and following is None)
        return minted

    async def _fetch(self, request: TokenRequest, tenant: str) -> Fetched:
        return await self._fetcher.post(
            request.url, request.body, tenant=tenant, most_bytes=MAX_ANSWER, headers=request.headers
        )


class _Refused(Exception):
    """The provider's answer is a refusal; `ended`: of the refresh token itself (RFC 6749, 5.2)."""

    def __init__(self, status: int, *, ended: bool) -> None:
        super().__init__(status)
        self.status, self.ended = status, ended


def _insist(answer: Fetched) -> Fetched:
    if 200 <= answer.status < 300:
        return answer
    try:
        ended = msgspec.json.decode(answer.body, type=_Answer).error == "invalid_grant"
    except (msgspec.MsgspecError, RecursionError):
        ended = False
    raise _Refused(answer.status, ended=ended)


def _following(request: TokenRequest, answer: Fetched) -> str | None:
    """The other refresh token that a provider gave beside the access token; ValueError for one that cannot be kept."""
    said = msgspec.json.decode(answer.body, type=_Answer).refresh_token
    if said is None or [said] == parse_qs(request.body.decode()).get("refresh_token"):
        return None
    if not isinstance(said, str) or not _REFRESH_TOKEN.fullmatch(said):
        raise ValueError
    return said


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

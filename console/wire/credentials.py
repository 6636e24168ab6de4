"""As whom the console asks: a tenant key, or a person's session that is renewed as it goes."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from console.tasks import spawn
from console.wire.failures import AnswerLost, Failure, Malformed, SignedOut
from console.wire.tokens import Tokens, TokenStore
from words.texts.moments import local_now

Refresh = Callable[[str], Awaitable[Tokens]]
# Before its end by so much a token is renewed: longer than a request takes.
AHEAD: Final = timedelta(seconds=60)
_LOST: Final = (AnswerLost, Malformed)


class Credential(Protocol):
    """The part of a request by which the client identifies itself."""

    is_session: bool

    def headers(self) -> dict[str, str]:
        """The headers that say who asks."""
        ...

    async def freshen(self, refresh: Refresh) -> None:
        """Before a request: renew what ends soon."""
        ...

    async def renew(self, refused: dict[str, str], refresh: Refresh) -> bool:
        """After a 401 to these headers: whether it is worth asking once more."""
        ...

    async def forget(self) -> None:
        """Keep nothing of it."""
        ...

    async def settle(self) -> None:
        """Before the console ends: finish what must not be left half done."""
        ...


class TenantKey:
    """The key of a tenant: no person, so nothing to renew and no second factor."""

    is_session = False

    def __init__(self, key: str) -> None:
        self._key = key

    def headers(self) -> dict[str, str]:
        return {"X-Service-Key": self._key}

    async def freshen(self, refresh: Refresh) -> None:
        return None

    async def renew(self, refused: dict[str, str], refresh: Refresh) -> bool:
        return False

    async def forget(self) -> None:
        return None

    async def settle(self) -> None:
        return None


class Session:
    """A person's session. New tokens are kept before they are used, and under a lock that all consoles share."""

    is_session = True

    def __init__(self, store: TokenStore, tokens: Tokens, now: Callable[[], datetime] = local_now) -> None:
        self._store = store
        self._tokens = tokens
        self._now = now
        # Where nothing can be kept, that nothing is kept does not say that somebody signed out.
        self._was_kept = True
        self._left = False
        self._turn = asyncio.Lock()
        self._running = set[asyncio.Task[Any]]()

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._tokens.token}"}

    async def keep(self) -> None:
        """Keep the tokens of a sign-in."""
        await self._whole(self._kept_first())

    async def freshen(self, refresh: Refresh) -> None:
        if self._tokens.refresh_token and self._tokens.end_within(AHEAD, self._now()):
            await self._whole(self._renew(self._tokens.token, refresh))

    async def renew(self, refused: dict[str, str], refresh: Refresh) -> bool:
        return await self._whole(self._renew(refused.get("Authorization", "").removeprefix("Bearer "), refresh))

    async def advance(self, ask: Callable[[], Awaitable[Tokens]]) -> None:
        """Go on with the tokens that a request answers, as a step-up does: the ones before are used up by it."""
        await self._whole(self._advance(ask))

    async def forget(self) -> None:
        await self._whole(self._forget())

    async def settle(self) -> None:
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _whole[Result](self, story: Coroutine[Any, Any, Result]) -> Result:
        """Run to completion even if the caller is cancelled: tokens received but not stored would end the session."""
        return await asyncio.shield(spawn(story, "tokens", self._running))

    async def _renew(self, refused: str, refresh: Refresh) -> bool:
        async with self._turn:
            if self._tokens.token != refused:
                return True
            async with self._store.alone():
                if await self._was_left():
                    return False
                kept = await asyncio.to_thread(self._store.read)
                if kept is not None and kept != self._tokens:
                    if (kept.user, kept.tenant) != (self._tokens.user, self._tokens.tenant):
                        # Another person has signed in to this profile: that is not our session.
                        return False
                    # Another console has renewed meanwhile; our older refresh token would end both.
                    self._tokens = kept
                    if not kept.end_within(AHEAD, self._now()):
                        return True
                if not self._tokens.refresh_token:
                    return False
                await self._take(lambda: refresh(self._tokens.refresh_token), used_up_by=(*_LOST, SignedOut))
        return True

    async def _advance(self, ask: Callable[[], Awaitable[Tokens]]) -> None:
        async with self._turn, self._store.alone():
            if await self._was_left():
                raise SignedOut("You left this session.", status=401, code="", data={})
            await self._take(ask)

    async def _was_left(self) -> bool:
        """Tell whether somebody signed out, here or in another console: then nothing is renewed or kept any more."""
        if not self._left and self._was_kept and await asyncio.to_thread(self._store.is_empty):
            self._leave()
        return self._left

    def _leave(self) -> None:
        self._left, self._tokens = True, self._tokens.without_refresh_token()

    async def _take(
        self, ask: Callable[[], Awaitable[Tokens]], *, used_up_by: tuple[type[Failure], ...] = _LOST
    ) -> None:
        try:
            tokens = await ask()
        except used_up_by:
            # It may have happened: the refresh token is not shown a second time.
            self._tokens = self._tokens.without_refresh_token()
            await self._write(self._tokens)
            raise
        await self._write(tokens)
        self._tokens = tokens

    async def _write(self, tokens: Tokens) -> None:
        await asyncio.to_thread(self._store.write, tokens)
        self._was_kept = not await asyncio.to_thread(self._store.is_empty)

    async def _kept_first(self) -> None:
        async with self._store.alone():
            await self._write(self._tokens)

    async def _forget(self) -> None:
        async with self._turn, self._store.alone():
            self._leave()
            await asyncio.to_thread(self._store.forget)

"""As whom the console asks: a tenant key, or a person's session that is renewed as it goes. Decisions 11."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from console.tokens import Tokens, TokenStore

Refresh = Callable[[str], Awaitable[Tokens]]


class Credential(Protocol):
    """What the client puts into each request."""

    is_session: bool

    def headers(self) -> dict[str, str]:
        """The headers that say who asks."""
        ...

    async def renew(self, refresh: Refresh) -> bool:
        """After a 401: whether it is worth asking once more."""
        ...


class TenantKey:
    """The key of a tenant: no person, so nothing to renew and no second factor."""

    is_session = False

    def __init__(self, key: str) -> None:
        self._key = key

    def headers(self) -> dict[str, str]:
        return {"X-Service-Key": self._key}

    async def renew(self, refresh: Refresh) -> bool:
        return False


class Session:
    """A person's session. Its tokens are kept whenever they change, before they are used."""

    is_session = True

    def __init__(self, store: TokenStore, tokens: Tokens) -> None:
        self._store = store
        self._tokens = tokens
        self._renewing = asyncio.Lock()

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._tokens.token}"}

    async def take(self, tokens: Tokens) -> None:
        """Go on with other tokens, as after a second factor was shown."""
        await asyncio.to_thread(self._store.write, tokens)
        self._tokens = tokens

    async def renew(self, refresh: Refresh) -> bool:
        used = self._tokens
        async with self._renewing:
            if self._tokens is not used:
                return True
            # Another console of this profile may have renewed meanwhile; using our old token then would end both.
            with await asyncio.to_thread(_entered, self._store) as _:
                kept = await asyncio.to_thread(self._store.read)
                if kept is not None and kept.refresh_token != used.refresh_token:
                    self._tokens = kept
                    return True
                await self.take(await refresh(used.refresh_token))
        return True


def _entered(store: TokenStore) -> "_Held":
    return _Held(store)


class _Held:
    """The store's lock, taken in a thread (it may have to wait) and let go anywhere."""

    def __init__(self, store: TokenStore) -> None:
        self._context = store.alone()
        self._context.__enter__()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *failure: object) -> None:
        self._context.__exit__(None, None, None)

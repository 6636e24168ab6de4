"""Signing in: with the tenant key, with tokens that were kept, or by a code.

The console's own client is separate: its requests keep the old identity until the sign-in is complete.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from console.entry.device_flow import Asking, DeviceCode, new_code
from console.entry.person import Person, find_person, find_tenant
from console.entry.settings import Settings
from console.wire.api_client import ApiClient
from console.wire.credentials import Credential, Session, TenantKey
from console.wire.failures import Answered, Away, Failure, SignedOut, TooFast
from console.wire.tokens import Tokens, TokenStore

# The tenant key, or the tokens that were kept.
Way = Literal["key", "kept"]
# Seconds until it is asked again, and what is wrong meanwhile.
Wait = Callable[[float, str], Awaitable[None]]


class TenantUnknown(Failure):
    """The tenant to sign in to must be named first. `named` is the one that was named and does not exist."""

    def __init__(self, sentence: str, named: str = "") -> None:
        self.named = named
        super().__init__(sentence)


@dataclass(frozen=True)
class SignedIn:
    """The person who has signed in, and the credential that shows it."""

    person: Person
    credential: Credential


class SignInFlow:
    """The ways in to one service for one profile; `wait` is called before something is asked again."""

    def __init__(self, settings: Settings, store: TokenStore, client: ApiClient, wait: Wait) -> None:
        self._settings = settings
        self._store = store
        self._client = client
        self._wait = wait
        # Why what was there did not do, for the person to read beside the code.
        self.reason = ""

    async def with_stored_credential(self, ways: tuple[Way, ...]) -> SignedIn | None:
        """The tenant key, else the tokens that were kept; None where a code is needed. Raises Failure."""
        if self._settings.key and "key" in ways:
            credential: Credential = TenantKey(self._settings.key)
            try:
                return await self._signed_in(credential)
            except SignedOut:
                where = self._settings.key_from
                raise Failure(f"The service does not know this tenant key{where and f' (from {where})'}.") from None
        kept = await self._read_store() if "kept" in ways else None
        # Tokens for another tenant than the profile names would open the wrong door.
        if kept is None or self._settings.tenant not in (None, kept.tenant):
            return None
        try:
            return await self._signed_in(Session(self._store, kept))
        except SignedOut:
            self.reason = "The saved session has ended."
            return None

    async def code(self, named: str = "") -> DeviceCode:
        """A new code, for the tenant that was named or is known; raises TenantUnknown."""
        tenant = named or await self._tenant()
        if not tenant:
            raise TenantUnknown(
                "Which tenant do you want to sign in to? Type its id, which those who invited you know, then Enter. "
                "With a key of the tenant in SERVICE_KEY_FILE nobody need sign in."
            )
        try:
            return await self._patiently(lambda: new_code(self._client, tenant))
        except Answered as refused:
            if refused.code == "bad_body":
                shape = "A tenant's id may have only letters, digits and _ - . : and at most 64 characters."
                raise TenantUnknown(f"{shape} Correct the tenant's id, then press Enter.", tenant) from None
            if refused.code != "invalid_request":
                raise
            raise TenantUnknown(f"{refused.sentence} Correct the tenant's id, then press Enter.", tenant) from None

    async def with_code(self, code: DeviceCode) -> SignedIn:
        """The person who approved the code; raises Ended. From now on the session is stored."""
        session = Session(self._store, await Asking(self._client, code).session(self._wait))
        await session.keep()
        return await self._signed_in(session)

    async def _signed_in(self, credential: Credential) -> SignedIn:
        self._client.credential = credential
        try:
            return SignedIn(await self._patiently(lambda: find_person(self._client)), credential)
        finally:
            self._client.credential = None

    async def _tenant(self) -> str:
        if self._settings.tenant:
            return self._settings.tenant
        if kept := await self._read_store():
            return kept.tenant
        if not self._settings.key:
            return ""
        self._client.credential = TenantKey(self._settings.key)
        try:
            return await self._patiently(lambda: find_tenant(self._client)) or ""
        except Answered:
            return ""
        finally:
            self._client.credential = None

    async def _read_store(self) -> Tokens | None:
        # A keyring may ask the person first.
        return await asyncio.to_thread(self._store.read)

    async def _patiently[Result](self, ask: Callable[[], Awaitable[Result]]) -> Result:
        failures = 0
        while True:
            try:
                return await ask()
            except Away as away:
                failures += 1
                await self._wait(self._client.patience.again_in(failures), away.sentence)
            except TooFast as refused:
                await self._wait(refused.retry_after, refused.sentence)

"""One run of a command: the service it asks, as whom, and what it prints."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Self
from urllib.parse import quote

from console.entry.person import Person, find_person, find_tenant
from console.entry.profiles import has_profile
from console.entry.settings import Settings, config_folder, load
from console.wire.api_client import ApiClient, Page, new_key
from console.wire.credentials import Session, TenantKey
from console.wire.failures import AnswerLost, Failure, MfaRequired
from console.wire.signing import RequestSigner
from console.wire.tokens import Tokens, TokenStore
from tenant_command.factor import KEY_HAS_NO_FACTOR, show_factor, unshown
from tenant_command.printing import Printer

# So many of a list are asked for at once, where not all are wanted: the shortest longest page of the service.
_PAGE: Final = 200
_SIGN_IN = "Nobody is signed in here: sign in with `custody login`, or name a tenant key in SERVICE_KEY_FILE."
_OTHER_TENANT = (
    "The session here is for tenant {0}, and not {1}: sign in with `custody login --tenant {1}`, under a --profile of "
    "its own to keep both."
)


class SignInFirst(Failure):
    """There is no credential to ask with."""


@dataclass(frozen=True)
class Given:
    """The options that every command takes."""

    profile: str | None
    url: str | None
    tenant: str | None
    as_json: bool

    def settings(self, *, new_profile: bool) -> Settings:
        """Read the settings, the same as those of the console; raises BadSetting."""
        if new_profile and self.profile and self.url and not has_profile(config_folder(), self.profile):
            # Complete in itself, as one in the file is: the environment says nothing of it.
            return replace(load(_words(url=self.url, tenant=self.tenant), {}), profile=self.profile)
        return load(_words(profile=self.profile, url=self.url, tenant=self.tenant), os.environ)


def path(*parts: str) -> str:
    """Write the path of something of the API; what was typed stays one part of it."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _words(**named: str | None) -> list[str]:
    return [word for name, value in named.items() if value for word in (f"--{name}", value)]


class Call:
    """One run of a command."""

    def __init__(self, settings: Settings, *, as_json: bool) -> None:
        self.settings = settings
        self.out = Printer(as_json=as_json, about=settings.url)
        self.store = TokenStore(settings.folder, settings.profile, settings.url)
        self.store.say = self.out.warn
        # For programs a text is what was sent; a terminal gets what it cannot obey.
        self.client = ApiClient(settings.url, exact=as_json)
        self.client.say = self.out.warn
        if settings.signing_key and settings.tenant:
            self.client.signer = RequestSigner(settings.signing_key, settings.tenant)

    @classmethod
    @asynccontextmanager
    async def of(cls, given: Given, *, new_profile: bool) -> AsyncIterator[Self]:
        """Begin one, and close what it opened."""
        call = cls(given.settings(new_profile=new_profile), as_json=given.as_json)
        try:
            with call.out.waiting():
                yield call
        finally:
            await call.client.close()

    async def identify(self) -> None:
        """Ask as the tenant key, or as the person who signed in; raises SignInFirst. Nothing is sent for it."""
        if self.client.credential is not None:
            return
        if self.settings.key:
            self.client.credential = TenantKey(self.settings.key)
            return
        kept = await asyncio.to_thread(self.store.read)
        if kept is None:
            raise SignInFirst(_SIGN_IN)
        if self.settings.tenant not in (None, kept.tenant):
            raise SignInFirst(_OTHER_TENANT.format(kept.tenant, self.settings.tenant))
        self.use(kept)

    def use(self, tokens: Tokens) -> None:
        """Ask as the person whose tokens these are."""
        self.client.credential = Session(self.store, tokens)

    async def person(self) -> Person:
        """Ask who this is."""
        await self.identify()
        return await find_person(self.client)

    async def tenant(self) -> str:
        """Return the id of the tenant; raises Failure where nothing says it."""
        await self.identify()
        if self.settings.tenant:
            return self.settings.tenant
        found = await find_tenant(self.client)
        if found is None:
            raise Failure("This credential belongs to no tenant: sign in with `custody login`, or take a tenant's key.")
        return found

    async def get(self, path: str, **query: Any) -> Any:
        """Ask for one thing."""
        await self.identify()
        return await self.act(lambda: self.client.get(path, Any, **query))

    async def page(self, path: str, **query: Any) -> Page[Any]:
        """Ask for some of a list."""
        await self.identify()
        return await self.act(lambda: self.client.get_page(path, Any, **query))

    async def every(self, path: str, *, most: int | None = None, **query: Any) -> list[Any]:
        """Ask for a whole list, or the first `most` of it, page by page, by its cursors or else by offsets."""
        found: list[Any] = []
        place: dict[str, Any] = {}
        while True:
            left = None if most is None else min(most - len(found), _PAGE)
            page = await self.page(path, **query, **place, limit=left)
            found += page.items
            if most is not None and len(found) >= most:
                return found[:most]
            if page.cursor is not None:
                place = {"cursor": page.cursor}
            elif page.next_offset is not None and page.next_offset > place.get("offset", 0):
                place = {"offset": page.next_offset}
            else:
                return found

    async def send(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """Change something; sent again under the same `key` it happens once."""
        await self.identify()
        return await self.act(lambda: self.client.send(method, path, Any, body, key=key))

    async def send_once(self, method: str, path: str, body: Any = None, *, key: str | None) -> Any:
        """The same for a command that takes `--key`, and names it where nobody knows whether it happened.

        Without the key that it went under nobody could repeat it and pay once.
        """
        key = key or new_key()
        cure = f"It may have happened, or not: run it again with --key {key}, and it happens once."
        try:
            return await self.send(method, path, body, key=key)
        except AnswerLost as lost:
            raise AnswerLost(f"{lost.sentence} {cure}") from None
        except asyncio.CancelledError:
            self.out.warn(cure)
            raise

    async def act[Result](self, request: Callable[[], Awaitable[Result]]) -> Result:
        """Do something; where a recent second factor is wanted, ask for it here, then do it once more."""
        try:
            return await request()
        except MfaRequired as needed:
            if self.client.credential is None or not self.client.credential.is_session:
                raise unshown(needed, KEY_HAS_NO_FACTOR) from None
            await show_factor(self.client, self.out, needed)
        return await request()

    def confirm(self, question: str, *, assumed: bool) -> None:
        """Ask whether to go on, unless `--yes` said so; raises Failure for a no."""
        if assumed:
            return
        if not sys.stdin.isatty():
            raise Failure(f"{question} Nobody can be asked here; say it with --yes.")
        if not self.out.asks(question):
            raise Failure("Nothing was changed.")

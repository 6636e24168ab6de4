"""The proxy's knowledge of agents, routes and secrets, and its greatest age.

Everything is read when it is first needed. A notification of the database drops what changed at once; should one be
lost, no answer is used longer than FRESH_SECONDS, so that a revoked token, a changed route or a rotated secret takes
effect within two seconds. While the database is away what was known goes on for STALE_SECONDS, then requests are
refused.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from custody.credentials.aws_key import AWS_SIGNATURE, AwsKey, ValueNotForAws, read_key
from custody.credentials.coverage import covers
from custody.credentials.match import RouteTable
from custody.credentials.patterns import HostPattern, PathPattern, compile_host, compile_path
from custody.credentials.payment_routes import PaymentRoute, PaymentRouteFields
from custody.credentials.rules import ValueNotForHeader, ValueNotForUser, value_fits
from custody.credentials.target import Target
from custody.credentials.types import CredentialRoute, Placement, RouteFields
from custody.kit import clock
from custody.kit.cache import Cache
from custody.kit.callers import AgentCaller, Origin, Proof
from custody.kit.db import DatabaseAway, Pool, keep_alive
from custody.kit.deadlines import in_time
from custody.kit.errors import Unavailable
from custody.kit.logs import logger
from custody.kit.tasks import leave_to_caller, spawn
from custody.protocol.client import SignerClient
from custody.protocol.signer.secrets import Revealed, RevealForRoute, TokenRequest
from proxy_addon.aws_request import Signature
from proxy_addon.inject import Placed, format_value
from proxy_addon.mask import Needles, needles
from proxy_addon.minted import PAUSE_SECONDS, Minted, Minter, NotMinted
from proxy_addon.refreshing import Refresh

log = logger("proxy")
CHANNEL = "custody_changes"
FRESH_SECONDS = 1.0
STALE_SECONDS = 10.0
SECRET_SECONDS = 30.0
_AGENTS, _TENANTS, _SECRETS = 20_000, 2_000, 1_000
_RELISTEN_SECONDS = 1.0
_FORGET_SECONDS = 5.0
# A database that does not answer in this time counts as away.
_READ_SECONDS = 2.0
_FEW_ROUTES, _LARGE_VALUE = 100, 2048


class StoreAway(Unavailable):
    """The proxy cannot reach its database, so it cannot check whether this request is still allowed; retry shortly."""


class Standing(msgspec.Struct, frozen=True):
    """The valid tokens of an agent, and the version of its tenant's routes and secrets."""

    incarnation: str
    token_epoch: int
    frozen: bool
    credential_version: int


class Credential:
    """A revealed secret with what follows from it: how it is written, and what must not come back.

    Of a route that names further secrets, all of them.
    """

    __slots__ = (
        "_host",
        "_path",
        "expires_at",
        "fields",
        "fits",
        "minted",
        "needles",
        "placed",
        "secret_id",
        "secret_version",
        "signature",
    )

    def __init__(self, revealed: Revealed, minted: Minted | None = None) -> None:
        self.minted = minted
        self.fields: RouteFields = revealed.fields
        self.secret_id = revealed.secret_id
        self.secret_version = revealed.secret_version
        ends = [end for end in (revealed.expires_at, *(one.expires_at for one in revealed.also)) if end is not None]
        self.expires_at: datetime | None = min(ends, default=None)
        own = revealed.value.decode() if minted is None else minted.token
        values = [own, *(one.value.decode() for one in revealed.also)] if self.fields.placements else []
        said = list(zip(self.fields.placements, values, strict=True))
        # A token is of characters that fit everywhere.
        self.fits = all(_fits(one, value) for one, value in said[minted is not None :])
        self.signature: Signature | None = None
        if self.fields.inject_as == AWS_SIGNATURE and self.fits:
            key, said, values = read_key(values[0].encode()), said[1:], values[1:]
            self.signature = _signature(key, self.fields.inject_key)
            values += [text for text in (key.secret_access_key, key.session_token) if text is not None]
        self.placed = [Placed(one, format_value(one, value)) for one, value in said]
        self.needles = Needles.together([needles(value) for value in values])
        self._host: HostPattern = compile_host(revealed.fields.host_pattern)
        self._path: PathPattern = compile_path(revealed.fields.path_pattern)

    def __repr__(self) -> str:
        return f"Credential({self.secret_id}, {self.secret_version})"

    @property
    def expired(self) -> bool:
        """True if its time is over, by this process' clock."""
        return self.expires_at is not None and self.expires_at <= clock.now()

    def covers(self, target: Target, method: str, agent: str) -> bool:
        """Say whether the route *as the signer sealed it* says so: a changed row in the database decides nothing."""
        fields = self.fields
        return (
            fields.enabled
            and fields.serves(agent)
            and fields.method in ("*", method)
            and self._host.matches(target.host, target.port)
            and covers(self._path, target)
        )


def _fits(said: Placement, value: str) -> bool:
    try:
        value_fits(said, value)
    except (ValueNotForHeader, ValueNotForUser, ValueNotForAws):
        return False
    return True


def _signature(key: AwsKey, scope: str) -> Signature:
    # 5 MB and a tenth of a second that most deployments need not spend.
    from proxy_addon.aws_signature import AwsSignature  # noqa: PLC0415

    return AwsSignature(key, scope)


class Tables(msgspec.Struct, frozen=True):
    """A tenant's routes; None where it has no payment routes."""

    credentials: RouteTable[CredentialRoute]
    payments: RouteTable[PaymentRoute] | None


class LookupCache:
    """The proxy's look-ups, each cached as long as it may be and asked once however many wait for it."""

    def __init__(self, pool: Pool, signer: SignerClient, minter: Minter) -> None:
        self._minter = minter
        self._pool = pool
        self._signer = signer
        self._standings: Cache[tuple[str, str], Standing | None] = Cache(_AGENTS, STALE_SECONDS)
        self._not_minted: Cache[tuple[str, str, int], type[NotMinted]] = Cache(_SECRETS, PAUSE_SECONDS)
        self._tables: Cache[str, tuple[int, Tables]] = Cache(_TENANTS)
        self._credentials: Cache[tuple[str, str], tuple[int, Credential]] = Cache(_SECRETS, SECRET_SECONDS)
        self._asking: dict[Any, asyncio.Future[Any]] = {}
        # Rises with every notification of a tenant: an answer that was asked for before one is not kept.
        self._changes: Counter[str] = Counter()

    async def standing(self, tenant: str, agent: str) -> Standing | None:
        """Find how an agent stands right now; None when there is none."""
        key, now = (tenant, agent), time.monotonic()
        found = self._standings.entry(key)
        if found is not None and now - found.at < FRESH_SECONDS:
            return found.value
        try:
            standing: Standing | None = await self._once(
                ("standing", key, self._changes[tenant]), lambda: self._read_standing(key)
            )
        except DatabaseAway:
            if found is None or time.monotonic() - found.at > STALE_SECONDS:
                raise StoreAway from None
            return found.value
        return standing

    async def tables(self, tenant: str, version: int) -> Tables:
        """The tenant's routes, at least as new as this version."""
        found = self._tables.get(tenant)
        if found is not None and found[0] == version:
            return found[1]
        try:
            tables: Tables = await self._once(("table", tenant, version), lambda: self._read_tables(tenant, version))
        except DatabaseAway:
            raise StoreAway from None
        return tables

    async def credential(self, tenant: str, route: str, version: int, caller: AgentCaller) -> Credential:
        """The secret of a route, at least as new as this version. Raises what the signer refused it for."""
        found = self._credentials.get((tenant, route))
        refused = self._not_minted.get((tenant, route, version))
        if found is not None and found[0] == version:
            minted = found[1].minted
            if minted is None or minted.fresh:
                return found[1]
            if minted.usable:
                if refused is None:
                    self._renew(tenant, route, version, caller)
                return found[1]
        if refused is not None:
            raise refused
        # Not shared between waiting requests: each asks with its own proof, and the signer judges each.
        return await self._reveal(tenant, route, version, caller)

    def _renew(self, tenant: str, route: str, version: int, caller: AgentCaller) -> None:
        """Ask for the next token while the last one still serves, once however many would."""
        key = ("renew", tenant, route, version)
        if key not in self._asking:
            renewing = spawn(self._reveal(tenant, route, version, caller), "renew", on_failure=lambda *_: None)
            self._asking[key] = renewing
            renewing.add_done_callback(lambda _: self._asking.pop(key, None))

    async def _reveal(self, tenant: str, route: str, version: int, caller: AgentCaller) -> Credential:
        began, changes = time.monotonic(), self._changes[tenant]
        answer = (await self._signer.ask(RevealForRoute(route), caller)).answer
        # The forms of a large value take long to find, and so does the library that signs.
        large = max(len(answer.value), *(len(one.value) for one in answer.also), 0) > _LARGE_VALUE
        slow = large or answer.fields.inject_as == AWS_SIGNATURE
        minted = None
        source: TokenRequest | Refresh | None = answer.request
        if (exchange := answer.fields.exchange) is not None and exchange.grant == "refreshToken" and answer.secret_id:
            source = Refresh(self._signer, route, answer.secret_id, caller)
        if source is not None:
            key = (tenant, route, answer.secret_id, answer.secret_version, answer.fields.exchange)
            try:
                minted = await self._minter.token(key, source, tenant)
            except NotMinted as problem:
                # Neither the provider nor the signer is asked again for each request that fails.
                self._not_minted.put((tenant, route, version), type(problem))
                raise
        credential = await asyncio.to_thread(Credential, answer, minted) if slow else Credential(answer, minted)
        if changes == self._changes[tenant]:
            self._credentials.put((tenant, route), (version, credential), began)
        return credential

    def distrust(self, tenant: str, route: str) -> None:
        """Ask for another token of a route, because its API refused this one."""
        found = self._credentials.get((tenant, route))
        if found is not None and found[1].minted is not None and self._minter.distrust(found[1].minted):
            self._credentials.drop((tenant, route))

    def invalidate(self, tenant: str) -> None:
        """Something of this tenant changed: its cached data is fetched again."""
        self._changes[tenant] += 1
        self._standings.drop_where(lambda key: key[0] == tenant)
        self._credentials.drop_where(lambda key: key[0] == tenant)
        self._not_minted.drop_where(lambda key: key[0] == tenant)
        self._tables.drop(tenant)

    async def forget(self) -> None:
        """Let go of secrets that are too old to be used, until cancelled."""
        while True:
            await asyncio.sleep(_FORGET_SECONDS)
            self._credentials.drop_ended()
            self._minter.forget()

    async def listen(self, url: str) -> None:
        """Hear of changes until cancelled; without a connection the short age of everything must do."""
        while True:
            try:
                await self._listen_once(url)
            except DatabaseAway as problem:
                log.warning("not listening for changes", extra={"reason": type(problem).__name__})
            await asyncio.sleep(_RELISTEN_SECONDS)

    async def _listen_once(self, url: str) -> None:
        connection = await asyncpg.connect(url, timeout=5)
        keep_alive(connection)
        try:
            gone = asyncio.Event()
            connection.add_termination_listener(lambda _: gone.set())
            await connection.add_listener(CHANNEL, lambda *heard: self.invalidate(heard[-1]))
            # What changed while nobody listened was not heard.
            self._standings.clear()
            self._tables.clear()
            await gone.wait()
        finally:
            connection.terminate()

    async def _read_standing(self, key: tuple[str, str]) -> Standing | None:
        began, changes = time.monotonic(), self._changes[key[0]]
        asked = self._pool.fetchrow("SELECT * FROM proxy_standing($1, $2)", *key)
        row = await in_time(asked, _READ_SECONDS)
        standing = None
        if row is not None:
            standing = Standing(str(row["incarnation"]), row["token_epoch"], row["frozen"], row["credential_version"])
        if changes == self._changes[key[0]]:
            self._standings.put(key, standing, began)
        return standing

    async def _read_tables(self, tenant: str, version: int) -> Tables:
        rows = await self._pool.fetch("SELECT * FROM proxy_routes($1)", tenant)
        paying = await self._pool.fetch("SELECT * FROM proxy_payment_routes($1)", tenant)
        # Ten thousand routes take a tenth of a second: not on the event loop.
        few = len(rows) + len(paying) < _FEW_ROUTES
        tables = _tables(rows, paying) if few else await asyncio.to_thread(_tables, rows, paying)
        self._tables.put(tenant, (version, tables))
        return tables

    async def _once(self, key: Any, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Ask, unless the same question is on its way already; then wait for that answer."""
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = spawn(ask(), "look-up", on_failure=leave_to_caller)
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        # Shielded: a client that goes away does not take the answer from the others.
        return await asyncio.shield(asking)


def _tables(rows: list[Any], paying: list[Any]) -> Tables:
    routes = [_route(row) for row in rows]
    table = RouteTable([route for route in routes if route is not None])
    if table.broken or None in routes:
        log.error("credential routes that cannot be read are skipped", extra={"routes": table.broken[:10]})
    if not paying:
        return Tables(table, None)
    paid = [_payment_route(row) for row in paying]
    payments = RouteTable([route for route in paid if route is not None])
    if payments.broken or None in paid:
        log.error("payment routes that cannot be read are skipped", extra={"routes": payments.broken[:10]})
    return Tables(table, payments)


def _payment_route(row: Any) -> PaymentRoute | None:
    """A row as a payment route; None for one that the signer cannot have written."""
    try:
        return PaymentRoute(id=str(row["id"]), fields=msgspec.json.decode(row["fields"], type=PaymentRouteFields))
    except msgspec.ValidationError:
        return None


def _route(row: Any) -> CredentialRoute | None:
    """A row as a route; None for one that the signer cannot have written."""
    try:
        fields = msgspec.json.decode(row["fields"], type=RouteFields)
    except msgspec.ValidationError:
        return None
    return CredentialRoute(
        id=str(row["id"]),
        secret_id=None if row["secret_id"] is None else str(row["secret_id"]),
        fields=fields,
        secret_name=row["secret_name"] or "",
        secret_version=row["secret_version"] or 0,
        secret_lost=row["secret_lost"],
    )


def caller_of(tenant: str, agent: str, token: str, request_id: str, address: str) -> AgentCaller:
    """The agent as the signer wants to see it: with its own token as the proof."""
    return AgentCaller(proof=Proof("agent", token), origin=Origin(request_id, address), tenant=tenant, agent=agent)

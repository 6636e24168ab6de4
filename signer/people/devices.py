"""The device flow: a device shows a code, and a person who is signed in elsewhere lets it in. RFC 8628, Spec 2/4.2.

What the row says of the decision, and in which session it was made, is under a MAC: who can write the database can not
approve. Its times are not, they only shorten what a code may do. Poll errors are answers and no failures, because most
of them leave something written.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import msgspec

from custody.identity import user_codes
from custody.identity.app_clients import AppClient
from custody.identity.native_ids import BadBundleId, BadPackageName, bundle_id, package_name
from custody.kit import clock, tokens
from custody.kit.errors import Conflict, NotFound, Unavailable
from custody.protocol.messages import DecideDevice, Done, LookAtDevice, NewDeviceCode, Outcome, PollDeviceCode
from signer.context import Ask, Signer
from signer.people import attempts, persons, sessions
from signer.people.persons import Membership, NotAMember
from signer.proofs import APP_CLIENT_MAC, ProvenSession
from signer.sealing import fields

CODE_SECONDS = 600
INTERVAL_SECONDS = 5
# Of 10^11 codes. A right one gives none back, or its holder could go on guessing for ever.
GUESSES, GUESS_SECONDS = 30, 600
_MAC = "device-code-mac"
_TRIES = 3
_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
_CLIENT = "SELECT document, mac FROM app_clients WHERE tenant_id = $1 AND id = $2 AND enabled"
_PUT = (
    "INSERT INTO device_codes (device_hash, user_code, tenant_id, client_id, native_kind, native_id, mac, "
    "interval_seconds, created_at, expires_at, ip_address, user_agent) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (user_code) DO NOTHING RETURNING true"
)
# Whoever asks clears away what others left; never many at once.
_CLEAR = (
    "DELETE FROM device_codes WHERE device_hash IN "
    "(SELECT device_hash FROM device_codes WHERE expires_at < service_now() - interval '1 hour' LIMIT 20 "
    "FOR UPDATE SKIP LOCKED)"
)
_COLUMNS = (
    "SELECT d.*, d.expires_at <= service_now() AS expired, u.deactivated_at, "
    "d.polled_at + make_interval(secs => d.interval_seconds) > service_now() AS too_fast "
    "FROM device_codes d LEFT JOIN users u ON u.id = d.user_id "
)
_BY_DEVICE = _COLUMNS + "WHERE d.device_hash = $1 FOR UPDATE OF d"
_BY_USER_CODE = _COLUMNS + "WHERE d.user_code = $1 FOR UPDATE OF d"
_POLLED = "UPDATE device_codes SET polled_at = service_now(), interval_seconds = $2 WHERE device_hash = $1"
_BECOME = "UPDATE device_codes SET status = $2, user_id = $3, session_id = $4, mac = $5 WHERE device_hash = $1"
_AUDIT = "SELECT audit_append('user', $1, $2, 'device', $3, $4, $5)"


class DeviceCodeAbsent(NotFound):
    """No device of a tenant of yours shows this code, or the code has expired."""


class DeviceDecided(Conflict):
    """This code was decided on already."""


class _Refused(Exception):
    """An error of RFC 8628 or RFC 6749, and a sentence about it."""

    def __init__(self, error: str, description: str) -> None:
        self.answer = Done({"error": error, "description": description})
        super().__init__(error)


class _Code(msgspec.Struct, frozen=True, kw_only=True):
    """A device code as its row has it, its MAC found true."""

    device_hash: bytes
    user_code: str
    tenant: str
    client: str | None
    native_kind: str | None
    native_id: str | None
    status: str = "pending"
    user: str | None = None
    session: str | None = None

    @property
    def asker(self) -> tuple[str | None, str | None, str | None]:
        """What every poll must say again."""
        return self.client, self.native_kind, self.native_id


async def new_code(signer: Signer, message: NewDeviceCode, ask: Ask[None]) -> Outcome:
    """A device code, which the device alone knows, and the user code that it shows."""
    shown, now = tokens.new_api_key("dc"), clock.now()
    try:
        _check_native(message)
        for _ in range(_TRIES):
            code = _fresh(message, tokens.digest(shown))
            if await _put(signer, code, ask, now):
                data = {
                    "deviceCode": shown,
                    "userCode": code.user_code,
                    "verificationUri": f"{signer.public_url}/device",
                }
                return Done(data | {"expiresIn": CODE_SECONDS, "interval": INTERVAL_SECONDS})
    except _Refused as refused:
        return refused.answer
    except asyncpg.ForeignKeyViolationError:
        return Done({"error": "invalid_request", "description": "There is no such tenant."})
    raise Unavailable


async def poll(signer: Signer, message: PollDeviceCode, ask: Ask[None]) -> Outcome:
    """A session for the device that a person let in, once; else the error that says what to do next."""
    async with signer.pool.acquire() as connection:
        try:
            async with connection.transaction():
                return await _polled(connection, signer, message, ask)
        except _Refused as refused:
            # Nothing of it stays written.
            return refused.answer


async def look(signer: Signer, message: LookAtDevice, ask: Ask[ProvenSession]) -> Outcome:
    """What a device asks for, for a member of the tenant that it asks for."""
    await attempts.count(signer, _guesses(ask), GUESSES, GUESS_SECONDS)
    async with signer.pool.acquire() as connection, connection.transaction():
        row, code, to = await _undecided(connection, signer, message.user_code, ask)
        client = await _client(connection, signer, code) if code.client else None
        return Done({
            "userCode": code.user_code, "tenant": {"id": to.tenant, "name": to.name},
            "client": {"id": client.id, "name": client.name} if client else None,
            "nativeKind": code.native_kind, "nativeId": code.native_id, "createdAt": clock.iso(row["created_at"]),
            "expiresAt": clock.iso(row["expires_at"]), "ipAddress": row["ip_address"], "userAgent": row["user_agent"],
        })  # fmt: skip


async def decide(signer: Signer, message: DecideDevice, ask: Ask[ProvenSession]) -> Outcome:
    """Let the device in as the person who asks, or turn it away; once."""
    await attempts.count(signer, _guesses(ask), GUESSES, GUESS_SECONDS)
    status, caller = "approved" if message.approve else "denied", ask.caller
    async with signer.pool.acquire() as connection, connection.transaction():
        await connection.execute(_SCOPE, caller.tenant)
        # A session that ended a moment ago lets nobody in.
        await connection.execute("SELECT demand_key($1, $2)", caller.tenant, caller.standing)
        row, code, to = await _undecided(connection, signer, message.user_code, ask)
        if message.approve and code.client:
            await _client(connection, signer, code)
        decided = msgspec.structs.replace(code, status=status, user=caller.user, session=caller.session)
        await _become(connection, signer, decided)
        await connection.execute(_SCOPE, to.tenant)
        metadata = {"clientId": code.client, "nativeId": code.native_id, "deviceAddress": row["ip_address"]}
        await connection.execute(
            _AUDIT, caller.principal, f"device.{status}", code.user_code, msgspec.json.encode(metadata).decode(),
            ask.origin_row,
        )  # fmt: skip
    return Done({"userCode": code.user_code, "status": status})


def _check_native(message: NewDeviceCode) -> None:
    if message.native_id is None:
        return
    try:
        (bundle_id if message.native_kind == "bundle" else package_name)(message.native_id)
    except (BadBundleId, BadPackageName) as problem:
        raise _Refused("invalid_request", problem.message) from None
    if message.client is None:
        raise _Refused("invalid_request", "A native identifier needs the client_id that lists it.")


def _fresh(message: NewDeviceCode, device_hash: bytes) -> _Code:
    letters = "".join(secrets.choice(user_codes.ALPHABET) for _ in range(user_codes.LENGTH))
    return _Code(
        device_hash=device_hash, user_code=user_codes.written(letters), tenant=message.tenant, client=message.client,
        native_kind=message.native_kind, native_id=message.native_id,
    )  # fmt: skip


async def _put(signer: Signer, code: _Code, ask: Ask[None], now: datetime) -> bool:
    """Store it; False where another device shows this code already."""
    async with signer.pool.acquire() as connection, connection.transaction():
        if code.client is not None:
            await _allowed_client(connection, signer, code)
        put = await connection.fetchval(
            _PUT, code.device_hash, code.user_code, code.tenant, code.client, code.native_kind, code.native_id,
            _mac(signer, code), INTERVAL_SECONDS, now, now + timedelta(seconds=CODE_SECONDS), ask.origin.ip,
            ask.origin.user_agent,
        )  # fmt: skip
        await connection.execute(_CLEAR)
    return bool(put)


async def _polled(connection: Any, signer: Signer, message: PollDeviceCode, ask: Ask[None]) -> Outcome:
    row = await connection.fetchrow(_BY_DEVICE, tokens.digest(message.device_code))
    if row is None:
        raise _Refused("expired_token", "The device code is unknown, used, or older than ten minutes.")
    code = _read(signer, row)
    if code.asker != (message.client, message.native_kind, message.native_id):
        raise _Refused("invalid_client", "The code was issued to another client or native application.")
    if code.status == "denied":
        raise _Refused("access_denied", "The person refused.")
    if row["expired"] or code.status == "consumed":
        raise _Refused("expired_token", "The device code is unknown, used, or older than ten minutes.")
    if code.status == "pending":
        return await _wait(connection, row)
    return await _exchanged(connection, signer, row, code, ask)


async def _wait(connection: Any, row: Any) -> Outcome:
    """Come again: not before the interval has passed, which grows for who came too early."""
    interval = row["interval_seconds"] + (INTERVAL_SECONDS if row["too_fast"] else 0)
    await connection.execute(_POLLED, row["device_hash"], interval)
    if row["too_fast"]:
        return Done({"error": "slow_down", "description": f"Poll every {interval} seconds.", "interval": interval})
    return Done({"error": "authorization_pending", "description": "Nobody has decided yet.", "interval": interval})


async def _exchanged(connection: Any, signer: Signer, row: Any, code: _Code, ask: Ask[None]) -> Outcome:
    """Use up an approved code for a session, without any second factor of whoever approved it."""
    if code.client is not None:
        # It may have been switched off since.
        await _allowed_client(connection, signer, code)
    assert code.user is not None  # noqa: S101 - whoever approves is in the row, under its MAC
    if row["deactivated_at"] is not None:
        raise _Refused("access_denied", "The person is no longer active.")
    await _become(connection, signer, msgspec.structs.replace(code, status="consumed"))
    try:
        session = await sessions.begin(
            connection, signer, ask.origin, code.user, tenant=code.tenant, provider="device", amr=("device",)
        )
    except NotAMember:
        raise _Refused("access_denied", "The person is no longer a member of the tenant.") from None
    return Done({"session": session})


async def _undecided(
    connection: Any, signer: Signer, typed: str, ask: Ask[ProvenSession]
) -> tuple[Any, _Code, Membership]:
    """The living row behind a typed code and the person's membership in its tenant.

    The same answer for every code that does not concern the person, so that guessing finds nothing of other tenants.
    """
    shown = user_codes.normalised(typed)
    row = await connection.fetchrow(_BY_USER_CODE, shown) if shown else None
    if row is None or row["expired"]:
        raise DeviceCodeAbsent
    code = _read(signer, row)
    try:
        to = await persons.membership(connection, signer, ask.caller.user, code.tenant)
    except NotAMember:
        raise DeviceCodeAbsent from None
    if code.status != "pending":
        raise DeviceDecided
    return row, code, to


async def _client(connection: Any, signer: Signer, code: _Code) -> AppClient:
    """The app client that a device says it is; absent once it was removed or switched off."""
    try:
        return await _allowed_client(connection, signer, code)
    except _Refused:
        raise DeviceCodeAbsent from None


async def _allowed_client(connection: Any, signer: Signer, code: _Code) -> AppClient:
    """The enabled app client of the code's tenant, if it lists the native application."""
    await connection.execute(_SCOPE, code.tenant)
    row = await connection.fetchrow(_CLIENT, code.tenant, code.client)
    if row is None:
        raise _Refused("invalid_client", "The tenant has no such app client, or it is switched off.")
    content = fields(code.tenant, code.client or "", row["document"], "enabled")
    signer.sealer.check_mac(row["mac"], APP_CLIENT_MAC, code.tenant, content)
    client = msgspec.json.decode(row["document"], type=AppClient)
    listed = client.allowed_bundle_ids if code.native_kind == "bundle" else client.allowed_package_names
    if code.native_id is not None and code.native_id not in listed:
        raise _Refused("invalid_client", "The app client does not list this native application.")
    return client


async def _become(connection: Any, signer: Signer, code: _Code) -> None:
    await connection.execute(_BECOME, code.device_hash, code.status, code.user, code.session, _mac(signer, code))


def _read(signer: Signer, row: Any) -> _Code:
    """The row as a code; Tampered unless the signer wrote it."""
    code = _Code(
        device_hash=row["device_hash"], user_code=row["user_code"], tenant=row["tenant_id"], client=row["client_id"],
        native_kind=row["native_kind"], native_id=row["native_id"], status=row["status"],
        user=str(row["user_id"]) if row["user_id"] else None,
        session=str(row["session_id"]) if row["session_id"] else None,
    )  # fmt: skip
    signer.sealer.check_mac(row["mac"], _MAC, code.tenant, _content(code))
    return code


def _mac(signer: Signer, code: _Code) -> bytes:
    return signer.sealer.mac(_MAC, code.tenant, _content(code))


def _content(code: _Code) -> bytes:
    asker = (part or "" for part in code.asker)
    return fields(
        code.device_hash, code.user_code, code.tenant, *asker, code.status, code.user or "", code.session or ""
    )


def _guesses(ask: Ask[ProvenSession]) -> str:
    return f"device:{ask.caller.user}"

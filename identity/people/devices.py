"""The device flow: a device shows a code, and a person who is signed in elsewhere lets it in. RFC 8628.

What the row says of the decision, and in which session it was made, is under a MAC: who can write the database can not
approve. Its times are not, they only shorten what a code may do. Poll errors are answers and no failures, because most
of them leave something written.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from custody.identity.app_clients import AppClient
from custody.identity.native_ids import BadBundleId, BadPackageName, bundle_id, package_name
from custody.kit import clock, tokens
from custody.kit.errors import Unavailable
from custody.protocol.identity.devices import (
    Asker,
    DecideDevice,
    DeviceDecision,
    DeviceRefused,
    DeviceRequest,
    DeviceSignedIn,
    IssuedDeviceCode,
    LookAtDevice,
    NewDeviceCode,
    OAuthError,
    PollDeviceCode,
)
from custody.protocol.identity.refusals import DeviceCodeAbsent, DeviceDecided, NotAMember, SsoRequired
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proofs import APP_CLIENT_MAC
from custody.worker.proven import ProvenSession
from custody.worker.sealing import fields
from identity.context import Identity
from identity.people import attempts, persons, sessions, user_codes
from identity.people.persons import Membership

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
# Anyone who asks clears away what others left; never many at once.
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


class _Refused(Exception):
    """An error of RFC 8628 or RFC 6749, and a sentence about it."""

    def __init__(self, error: OAuthError, description: str) -> None:
        self.answer = DeviceRefused(error, description)
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
        """The texts that every poll must repeat."""
        return self.client, self.native_kind, self.native_id


async def new_code(identity: Identity, message: NewDeviceCode, call: Call[None]) -> IssuedDeviceCode | DeviceRefused:
    """A device code, which the device alone knows, and the user code that it shows.

    Also for a tenant that does not exist, for anybody may ask: nobody can let such a device in.
    """
    shown, now = tokens.new_api_key("dc"), clock.now()
    try:
        _check_native(message)
        for _ in range(_TRIES):
            code = _fresh(message, tokens.digest(shown))
            if await _put(identity, code, call, now):
                page = f"{identity.public_url}/device"
                return IssuedDeviceCode(shown, code.user_code, page, CODE_SECONDS, INTERVAL_SECONDS)
    except _Refused as refused:
        return refused.answer
    raise Unavailable


async def poll(identity: Identity, message: PollDeviceCode, call: Call[None]) -> DeviceSignedIn | DeviceRefused:
    """A session for the device that a person let in, once; else the error that says what to do next."""
    async with identity.pool.acquire() as connection:
        try:
            async with connection.transaction():
                return await _poll(connection, identity, message, call)
        except _Refused as refused:
            # Nothing of it stays written.
            return refused.answer


async def look(identity: Identity, message: LookAtDevice, call: Call[ProvenSession]) -> DeviceRequest:
    """Show a device's request to a member of the tenant that it asks for."""
    await attempts.count(identity, _guesses(call), GUESSES, GUESS_SECONDS)
    async with identity.pool.acquire() as connection, connection.transaction():
        row, code, to = await _find(connection, identity, message.user_code, call)
        client = await _client(connection, identity, code) if code.client else None
        return DeviceRequest(
            user_code=code.user_code,
            tenant=Asker(to.tenant, to.name),
            client=Asker(client.id, client.name) if client else None,
            native_bundle_id=code.native_id if code.native_kind == "bundle" else None,
            native_package_name=code.native_id if code.native_kind == "package" else None,
            ip_address=row["ip_address"],
            user_agent=row["user_agent"],
            created_at=clock.iso(row["created_at"]),
            expires_at=clock.iso(row["expires_at"]),
        )


async def decide(identity: Identity, message: DecideDevice, call: Call[ProvenSession]) -> DeviceDecision:
    """Let the device in as the person who asks, or turn it away; once."""
    await attempts.count(identity, _guesses(call), GUESSES, GUESS_SECONDS)
    status: Literal["approved", "denied"] = "approved" if message.approve else "denied"
    caller = call.caller
    async with identity.pool.acquire() as connection, connection.transaction():
        await connection.execute(_SCOPE, caller.tenant)
        # A session that ended a moment ago lets nobody in.
        await connection.execute("SELECT demand_credential($1, $2)", caller.tenant, caller.standing)
        row, code, to = await _find(connection, identity, message.user_code, call)
        if message.approve and code.client:
            await _client(connection, identity, code)
        decided = msgspec.structs.replace(code, status=status, user=caller.user, session=caller.session)
        await _become(connection, identity, decided)
        await connection.execute(_SCOPE, to.tenant)
        metadata = {"clientId": code.client, "nativeId": code.native_id, "deviceAddress": row["ip_address"]}
        await connection.execute(
            _AUDIT,
            caller.principal,
            vet(f"device.{status}"),
            code.user_code,
            msgspec.json.encode(metadata).decode(),
            call.origin_row,
        )
    return DeviceDecision(code.user_code, status)


def _check_native(message: NewDeviceCode) -> None:
    if message.native_id is None:
        return
    try:
        (bundle_id if message.native_kind == "bundle" else package_name)(message.native_id)
    except (BadBundleId, BadPackageName) as problem:
        raise _Refused("invalid_request", problem.message) from None
    if message.client is None:
        raise _Refused("invalid_request", "A native identifier requires the client_id that lists it.")


def _fresh(message: NewDeviceCode, device_hash: bytes) -> _Code:
    letters = "".join(secrets.choice(user_codes.ALPHABET) for _ in range(user_codes.LENGTH))
    return _Code(
        device_hash=device_hash,
        user_code=user_codes.spell(letters),
        tenant=message.tenant,
        client=message.client,
        native_kind=message.native_kind,
        native_id=message.native_id,
    )


async def _put(identity: Identity, code: _Code, call: Call[None], now: datetime) -> bool:
    """Store it; False where another device shows this code already."""
    async with identity.pool.acquire() as connection, connection.transaction():
        if code.client is not None:
            await _allowed_client(connection, identity, code)
        put = await connection.fetchval(
            _PUT,
            code.device_hash,
            code.user_code,
            code.tenant,
            code.client,
            code.native_kind,
            code.native_id,
            _mac(identity, code),
            INTERVAL_SECONDS,
            now,
            now + timedelta(seconds=CODE_SECONDS),
            call.origin.ip,
            call.origin.user_agent,
        )
        await connection.execute(_CLEAR)
    return bool(put)


async def _poll(
    connection: Any, identity: Identity, message: PollDeviceCode, call: Call[None]
) -> DeviceSignedIn | DeviceRefused:
    row = await connection.fetchrow(_BY_DEVICE, tokens.digest(message.device_code))
    if row is None:
        raise _Refused("expired_token", "The device code is unknown, used, or older than ten minutes.")
    code = _read(identity, row)
    if code.asker != (message.client, message.native_kind, message.native_id):
        raise _Refused("invalid_client", "The code was issued to another client or native application.")
    if code.status == "denied":
        raise _Refused("access_denied", "The person denied the request.")
    if row["expired"] or code.status == "consumed":
        raise _Refused("expired_token", "The device code is unknown, used, or older than ten minutes.")
    if code.status == "pending":
        return await _wait(connection, row)
    return await _exchange(connection, identity, row, code, call)


async def _wait(connection: Any, row: Any) -> DeviceRefused:
    """Come again: not before the interval has passed, which grows for who came too early."""
    interval = row["interval_seconds"] + (INTERVAL_SECONDS if row["too_fast"] else 0)
    await connection.execute(_POLLED, row["device_hash"], interval)
    if row["too_fast"]:
        return DeviceRefused("slow_down", f"Poll every {interval} seconds.", interval)
    return DeviceRefused("authorization_pending", "No decision has been made yet.", interval)


async def _exchange(connection: Any, identity: Identity, row: Any, code: _Code, call: Call[None]) -> DeviceSignedIn:
    """Use up an approved code for a session, without any second factor of anyone who approved it."""
    if code.client is not None:
        # It may have been switched off since.
        await _allowed_client(connection, identity, code)
    assert code.user is not None  # noqa: S101 - anyone who approves is in the row, under its MAC
    if row["deactivated_at"] is not None:
        raise _Refused("access_denied", "The person is no longer active.")
    await _become(connection, identity, msgspec.structs.replace(code, status="consumed"))
    assert code.session is not None  # noqa: S101 - as anyone who approves
    bound, methods = await sessions.letting_in(connection, identity, code.session)
    try:
        session = await sessions.begin(
            connection,
            identity,
            call.origin,
            code.user,
            tenant=code.tenant,
            provider="device",
            amr=("device", *methods),
            bound=bound,
        )
    except NotAMember:
        raise _Refused("access_denied", "The person is no longer a member of the tenant.") from None
    except SsoRequired:
        said = "The tenant requires single sign-on for the person's e-mail domain: sign on there, then approve again."
        raise _Refused("access_denied", said) from None
    return DeviceSignedIn(session)


async def _find(
    connection: Any, identity: Identity, typed: str, call: Call[ProvenSession]
) -> tuple[Any, _Code, Membership]:
    """The living row behind a typed code and the person's membership in its tenant.

    The same answer for every code that does not concern the person, so that guessing finds nothing of other tenants.
    """
    shown = user_codes.normalise(typed)
    row = await connection.fetchrow(_BY_USER_CODE, shown) if shown else None
    if row is None or row["expired"]:
        raise DeviceCodeAbsent
    code = _read(identity, row)
    try:
        to = await persons.membership(connection, identity, call.caller.user, code.tenant)
    except NotAMember:
        raise DeviceCodeAbsent from None
    # A session that stays in its tenant lets nothing into another one.
    if call.caller.bound and code.tenant != call.caller.tenant:
        raise DeviceCodeAbsent
    if code.status != "pending":
        raise DeviceDecided
    return row, code, to


async def _client(connection: Any, identity: Identity, code: _Code) -> AppClient:
    """The app client that a device says it is; absent once it was removed or switched off."""
    try:
        return await _allowed_client(connection, identity, code)
    except _Refused:
        raise DeviceCodeAbsent from None


async def _allowed_client(connection: Any, identity: Identity, code: _Code) -> AppClient:
    """The enabled app client of the code's tenant, if it lists the native application."""
    await connection.execute(_SCOPE, code.tenant)
    row = await connection.fetchrow(_CLIENT, code.tenant, code.client)
    if row is None:
        raise _Refused("invalid_client", "The tenant has no such app client, or it is switched off.")
    content = fields(code.tenant, code.client or "", row["document"], "enabled")
    identity.sealer.check_mac(row["mac"], APP_CLIENT_MAC, code.tenant, content)
    client = msgspec.json.decode(row["document"], type=AppClient)
    listed = client.allowed_bundle_ids if code.native_kind == "bundle" else client.allowed_package_names
    if code.native_id is not None and code.native_id not in listed:
        raise _Refused("invalid_client", "The app client does not list this native application.")
    return client


async def _become(connection: Any, identity: Identity, code: _Code) -> None:
    await connection.execute(_BECOME, code.device_hash, code.status, code.user, code.session, _mac(identity, code))


def _read(identity: Identity, row: Any) -> _Code:
    """The row as a code; Tampered unless identity wrote it."""
    code = _Code(
        device_hash=row["device_hash"],
        user_code=row["user_code"],
        tenant=row["tenant_id"],
        client=row["client_id"],
        native_kind=row["native_kind"],
        native_id=row["native_id"],
        status=row["status"],
        user=str(row["user_id"]) if row["user_id"] else None,
        session=str(row["session_id"]) if row["session_id"] else None,
    )
    identity.sealer.check_mac(row["mac"], _MAC, code.tenant, _content(code))
    return code


def _mac(identity: Identity, code: _Code) -> bytes:
    return identity.sealer.mac(_MAC, code.tenant, _content(code))


def _content(code: _Code) -> bytes:
    asker = (part or "" for part in code.asker)
    return fields(
        code.device_hash, code.user_code, code.tenant, *asker, code.status, code.user or "", code.session or ""
    )


def _guesses(call: Call[ProvenSession]) -> str:
    return f"device:{call.caller.user}"

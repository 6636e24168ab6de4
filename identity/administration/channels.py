"""Channels by which a tenant's people are told. The target is a secret: sealed to its channel, and opened only for the
message that goes there. Whatever is done to a channel, every other one is told, and the owners by mail.
"""

from typing import Any, Final

import msgspec

from custody.kit import ids
from custody.kit.errors import CustodyError, QuotaExceeded
from custody.protocol.identity import refusals
from custody.protocol.identity.channels import (
    ChangeChannel,
    CreateChannel,
    DeleteChannel,
    DeletedChannel,
    DueNotice,
    Led,
    OpenChannel,
    OpenedChannel,
    RetryNotice,
    SavedChannel,
    TestChannel,
)
from custody.worker.acts import acting, enter, remember, tell
from custody.worker.call import Call
from custody.worker.proofs import MEMBERSHIP_MAC, membership_content
from custody.worker.proven import PLATFORM, ProvenSession
from custody.worker.sealing import Context, Tampered
from identity.context import Identity
from identity.people.persons import IDENTITY_MAC, of_row

MAX_CHANNELS: Final = 20
MAX_BROWSERS: Final = 5
MAX_TRIES: Final = 20
_PUT = "SELECT * FROM put_channel($1, $2, $3, $4, $5, $6, $7, $8)"
_DELETE = "SELECT * FROM delete_channel($1, $2, $3)"
_TEST = "SELECT test_channel($1, $2, $3)"
_RETRY = "SELECT retry_notice($1, $2, $3)"
_DUE = "SELECT * FROM channel_due($1, $2)"
_MAILBOX = "SELECT * FROM team_mailbox($1, $2, $3)"
_TELL = "SELECT tell_channels($1, $2, $3, $4)"
_SEAL = (
    "INSERT INTO identity_sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "VALUES ($1, 'channel', $2, $3, $4, $5) ON CONFLICT (tenant_id, owner_kind, owner, purpose) "
    "DO UPDATE SET key_version = excluded.key_version, blob = excluded.blob"
)
_SEALED = (
    "SELECT blob FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'channel' AND owner = $2 AND purpose = $3"
)
_DESTROY = "DELETE FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'channel' AND owner = $2"
_read_sealed = msgspec.json.Decoder(OpenedChannel).decode


def purpose_of(kind: str) -> str:
    """Name the place of a target of this kind, so that it opens as no other."""
    return f"channel-{kind}"


async def create(identity: Identity, message: CreateChannel, call: Call[ProvenSession]) -> SavedChannel:
    """Make a channel, enabled."""
    return await _put(identity, call, ids.new_uuid(), message, message.kind)


async def change(identity: Identity, message: ChangeChannel, call: Call[ProvenSession]) -> SavedChannel:
    """Change what is given; a new target is sealed in the place of the one before."""
    return await _put(identity, call, message.channel, message, None)


async def delete(identity: Identity, message: DeleteChannel, call: Call[ProvenSession]) -> DeletedChannel:
    """Delete a channel. Its target stays for one message more, which says so, and an hour at most."""
    outcome = DeletedChannel(message.channel)
    async with acting(identity, call) as connection:
        row = await connection.fetchrow(_DELETE, call.caller.tenant, message.channel, call.caller.user)
        if row is None:
            raise refusals.ChannelAbsent
        await _say(connection, call, row, "deleted", farewell=True)
        await tell(connection, call, "channel.deleted", "channel", message.channel)
        await remember(connection, call, outcome)
    return outcome


async def test(identity: Identity, message: TestChannel, call: Call[ProvenSession]) -> DueNotice:
    """Make a message that says it is a test; it is tried once."""
    outcome = DueNotice(ids.new_uuid())
    async with acting(identity, call) as connection:
        word = await connection.fetchval(_TEST, call.caller.tenant, message.channel, outcome.id)
        _admit(word, absent=refusals.ChannelAbsent())
        await tell(connection, call, "channel.tested", "channel", message.channel, notice=outcome.id)
        await remember(connection, call, outcome)
    return outcome


async def retry(identity: Identity, message: RetryNotice, call: Call[ProvenSession]) -> DueNotice:
    """Make a failed message due; what was decided meanwhile is left out of it."""
    outcome = DueNotice(message.notice)
    async with acting(identity, call) as connection:
        word = await connection.fetchval(_RETRY, call.caller.tenant, message.notice, MAX_TRIES)
        _admit(word, absent=refusals.NoticeAbsent())
        await tell(connection, call, "channel.notice_retried", "notice", message.notice)
        await remember(connection, call, outcome)
    return outcome


async def open_target(identity: Identity, message: OpenChannel, _call: Call[None]) -> OpenedChannel:
    """The target of a message that is due. Of who left the team, or a channel that is off, there is none."""
    async with identity.pool.acquire() as connection, connection.transaction():
        await enter(connection, message.tenant)
        row = await connection.fetchrow(_DUE, message.tenant, message.notice)
        if row is None:
            raise refusals.ChannelAbsent
        if row["owner_user"] is not None:
            return OpenedChannel(await _mailbox(connection, identity, message.tenant, owner=row["owner_user"]))
        blob = await connection.fetchval(_SEALED, message.tenant, _owner(row), purpose_of(row["kind"]))
        if blob is None:
            raise Tampered
        opened = _read_sealed(identity.sealer.open(blob, _context(row)))
        if row["kind"] == "email":
            await _mailbox(connection, identity, message.tenant, address=opened.target)
        if row["is_last"]:
            await connection.execute(_DESTROY, message.tenant, _owner(row))
    return opened


async def _put(
    identity: Identity,
    call: Call[ProvenSession],
    channel: str,
    message: CreateChannel | ChangeChannel,
    kind: str | None,
) -> SavedChannel:
    tenant, led, outcome = call.caller.tenant, message.led, SavedChannel(channel)
    shown = (led.host, led.last_four) if led is not None else (None, None)
    most = MAX_BROWSERS if kind == "webpush" else MAX_CHANNELS
    async with acting(identity, call) as connection:
        row = await connection.fetchrow(_PUT, tenant, channel, kind, *shown, message.fields, most, call.caller.user)
        if row is None:
            raise refusals.ChannelAbsent
        if row["word"] == "full":
            told = f"There are {most} such notification channels; delete one first."
            raise QuotaExceeded(told, quota="notificationChannels", used=most, limit=most)
        if led is not None:
            await _seal(connection, identity, row, led)
        await _say(connection, call, row, "changed" if kind is None else "added")
        action = "channel.changed" if kind is None else "channel.created"
        await tell(connection, call, action, "channel", channel, sort=row["kind"], host=shown[0])
        await remember(connection, call, outcome)
    return outcome


async def _seal(connection: Any, identity: Identity, row: Any, led: Led) -> None:
    """Seal where a channel leads; mail leads to somebody of the team alone, or we would write to strangers."""
    if row["kind"] == "email":
        try:
            await _mailbox(connection, identity, row["tenant_id"], address=led.target)
        except refusals.ChannelAbsent:
            sentence = "target: no member of this tenant has proven this address; they sign in with a code sent to it."
            raise refusals.BadChannelTarget(sentence, fields=["target"]) from None
    value = msgspec.json.encode(OpenedChannel(led.target, led.token))
    blob = identity.sealer.seal(value, _context(row))
    place = row["tenant_id"], _owner(row), purpose_of(row["kind"])
    await connection.execute(_SEAL, *place, identity.sealer.key_version, blob)


async def _say(connection: Any, call: Call[ProvenSession], row: Any, what: str, *, farewell: bool = False) -> None:
    told = {"event": "channel.changed", "by": call.caller.principal, "kind": row["kind"], "what": what}
    said = msgspec.json.encode(told).decode()
    await connection.execute(_TELL, row["tenant_id"], row["id"], said if farewell else None, said)


def _admit(word: str, *, absent: CustodyError) -> None:
    if word != "done":
        raise {
            "absent": absent,
            "disabled": refusals.ChannelDisabled(),
            "tested": refusals.ChannelTested(retry_after=60),
            "unfailed": refusals.NoticeNotFailed(),
            "enough": refusals.NoticeTriedEnough(),
        }[word]


async def _mailbox(
    connection: Any, identity: Identity, tenant: str, *, address: str | None = None, owner: Any = None
) -> str:
    """The address, if somebody of the team has proven it, or an owner's; ChannelAbsent where there is none."""
    row = await connection.fetchrow(_MAILBOX, tenant, address, owner)
    if row is None:
        raise refusals.ChannelAbsent
    found = of_row(row)
    identity.sealer.check_mac(row["mac"], IDENTITY_MAC, PLATFORM, found.content)
    content = membership_content(tenant, found.user, row["role"], row["member_since"])
    identity.sealer.check_mac(row["membership_mac"], MEMBERSHIP_MAC, tenant, content)
    return found.subject


def _owner(row: Any) -> str:
    return str(row["id"]) if row["user_id"] is None else f"{row['id']}/{row['user_id']}"


def _context(row: Any) -> Context:
    return Context(row["tenant_id"], "channel", _owner(row), purpose_of(row["kind"]))

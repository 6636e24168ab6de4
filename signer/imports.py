"""Private keys that come from elsewhere: one-time keys, and the wallets that are replaced. docs/wallets.md.

The private half of a session is sealed to everything that the session is bound to, and deleted with its use. Until
then every failure leaves the session, and counts. A wallet that ever signed is not replaced: receipts, tracking and
nonces name it by its address. The key that goes is kept, for somebody may have paid it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

import msgspec

from custody.imports.envelope import ALGORITHM, Bound, Envelope, EnvelopeRefused, encode, new_key, open_envelope
from custody.imports.plaintext import NoKey, secret_of
from custody.kit import clock, ids
from custody.kit.errors import CustodyError, Frozen
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.policies.quorum import enabled_quorums
from custody.protocol.signer.import_refusals import (
    ImportByPerson,
    ImportDisabled,
    ImportEnvelope,
    ImportSessionInvalid,
    ImportUnderQuorum,
    ImportWrongAgent,
    TooManyImports,
    WalletInUse,
    WalletTaken,
)
from custody.protocol.signer.imports import (
    BeginImport,
    FinishImport,
    ImportAad,
    ImportAttestation,
    Imported,
    ImportSession,
    SealedKey,
)
from custody.protocol.signer.order_refusals import AgentAbsent, KeyTampered, PolicyTampered
from custody.protocol.signer.refusals import WalletOfPerson
from custody.protocol.signer.user_wallets import PREFIX, is_anothers
from custody.receipts.canonical import canonical
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.idempotency import IdempotencyRace, earlier
from custody.worker.proven import ProvenSession, ProvenTenant
from custody.worker.sealing import Context, Tampered, fields, sha256
from signer import ledger
from signer.context import Signer
from signer.rollback_journal import RolledBack
from signer.wallets.built_in import KEYS

log = logger(__name__)
ATTESTATION: Final = "custody-import-key/1"
PRIVATE_HALF: Final = "import-key"
SESSION_SECONDS: Final = 600
MAX_FAILURES: Final = 5
# Open at once, of a tenant.
MAX_OPEN: Final = 64
_ANCHOR = "SELECT * FROM agent_anchor($1, $2)"
_CONFIG = "SELECT version, judging, mac FROM tenant_config WHERE tenant_id = $1"
_LOCK = "SELECT lock_agent($1, $2)"
_OPEN = "SELECT count(*) FROM import_sessions WHERE tenant_id = $1 AND used_at IS NULL AND expires_at > service_now()"
_BEGIN = (
    "INSERT INTO import_sessions (tenant_id, id, agent_id, incarnation, chain, user_id, wallet_index, app_client, "
    "expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
)
_SEAL = "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) VALUES ($1, $2, $3, $4, $5, $6)"
_FIND = (
    "SELECT *, service_now() AS now FROM import_sessions WHERE tenant_id = $1 AND id = $2 AND used_at IS NULL "
    "AND expires_at > service_now() FOR UPDATE"
)
_BLOB = "SELECT blob FROM sealed WHERE tenant_id = $1 AND owner_kind = $2 AND owner = $3 AND purpose = $4"
_FAILED = (
    "UPDATE import_sessions SET failures = failures + 1, "
    "used_at = CASE WHEN failures + 1 >= $3 THEN service_now() END WHERE tenant_id = $1 AND id = $2"
)
_USED = (
    "UPDATE import_sessions SET used_at = service_now() WHERE tenant_id = $1 AND id = $2 AND used_at IS NULL "
    "RETURNING id"
)
_FORGET = "DELETE FROM sealed WHERE tenant_id = $1 AND owner_kind = 'import_session' AND owner = $2"
_IN_USE = (
    "SELECT EXISTS (SELECT FROM transactions WHERE tenant_id = $1 AND agent_id = $2 AND family = $3 "
    "AND (signature IS NOT NULL OR status = 'pending_approval'))"
)
_TAKEN = "SELECT EXISTS (SELECT FROM wallets WHERE tenant_id = $1 AND family = $3 AND address = $4 AND agent_id <> $2)"
_NUMBER = (
    "SELECT count(*) + 1 FROM wallets WHERE tenant_id = $1 AND agent_id = $2 AND family = $3 AND scope LIKE 'before:%'"
)
_SET_ASIDE = "UPDATE wallets SET scope = $4 WHERE tenant_id = $1 AND agent_id = $2 AND family = $3 AND scope = ''"
_ADDRESS = (
    "INSERT INTO wallets (tenant_id, agent_id, family, address, created_at) VALUES ($1, $2, $3, $4, service_now())"
)
_REPLACE = (
    "UPDATE sealed SET key_version = $4, blob = $5 "
    "WHERE tenant_id = $1 AND owner_kind = 'agent' AND owner = $2 AND purpose = $3"
)


async def begin(signer: Signer, message: BeginImport, call: Call[ProvenTenant]) -> ImportSession:
    """A one-time key, bound to tenant, agent and chain."""
    _check_allowed(signer, call.caller.tenant, message.agent)
    async with acting(signer, call) as connection:
        incarnation = await admit(signer, connection, call, message.agent)
        bound = Bound(ids.new_uuid(), call.caller.tenant, message.agent, message.chain)
        aad = ImportAad(bound.session, bound.tenant, bound.agent, message.chain)
        begun = await make_session(signer, connection, call, bound, incarnation, aad)
        session = ImportSession(**begun, aad=aad)
        await remember(connection, call, session)
    return session


async def finish(signer: Signer, message: FinishImport, call: Call[ProvenTenant]) -> Imported:
    """Open the envelope, and put its key in place of the agent's."""
    _check_allowed(signer, call.caller.tenant, message.agent)
    async with acting(signer, call) as connection:
        await admit(signer, connection, call, message.agent)
        wanted = Bound(message.sealed.import_session_id, call.caller.tenant, message.agent, "")
        done = await replace_key(signer, connection, wanted, message.sealed, call)
        if not isinstance(done, CustodyError):
            imported = Imported(message.agent, done[1], done[0])  # type: ignore[arg-type]
            await remember(connection, call, imported)
    if isinstance(done, CustodyError):
        # After the commit: a failure counts.
        await refuse(signer, call, done)
    return imported


async def refuse(signer: Signer, call: Call[ProvenTenant], why: CustodyError) -> NoReturn:
    """Raise the refusal; or have the request tried again where a copy of it, at once, has the answer by now."""
    if call.key is not None and await earlier(signer, call) is not None:
        raise IdempotencyRace
    raise why


def _check_allowed(signer: Signer, tenant: str, agent: str) -> None:
    """Raise where the deployment lets no key in; into a person's wallet only where it lets people's keys in too."""
    if is_anothers(agent, tenant, None):
        raise WalletOfPerson
    flags = signer.imports
    if not (flags.any and flags.vault) or (agent.startswith(PREFIX) and not flags.user):
        raise ImportDisabled


async def admit(signer: Signer, connection: Any, call: Call[ProvenTenant], agent: str) -> str:
    """The agent's incarnation, under its lock, where tenant and rules let keys be imported."""
    caller, tenant = call.caller, call.caller.tenant
    config = await connection.fetchrow(_CONFIG, tenant)
    await connection.execute(_LOCK, tenant, agent)
    row = await connection.fetchrow(_ANCHOR, tenant, agent)
    if row is None:
        raise AgentAbsent
    try:
        judging = signer.judging.open(tenant, *((config["version"], *config[1:]) if config else (0, None, None)))
        rules = signer.policies.open(
            tenant,
            agent,
            str(row["incarnation"]),
            (row["head_version"], row["head_count"], row["head_mac"]),
            row["policy_version"],
            row["rules"] or "[]",
        )
    except (Tampered, RolledBack):
        raise PolicyTampered from None
    if judging.mfa.disable_for.key_import:
        raise ImportDisabled
    if not isinstance(caller, ProvenSession) and judging.mfa.require_for.get("keyImport", True):
        raise ImportByPerson
    if enabled_quorums(rules.rules):
        raise ImportUnderQuorum
    if row["frozen"]:
        raise Frozen
    return str(row["incarnation"])


async def make_session(
    signer: Signer, connection: Any, call: Call[ProvenTenant], bound: Bound, incarnation: str, aad: msgspec.Struct
) -> dict[str, Any]:
    """Keep a session, and tell of it; the fields of its answer but `aad`."""
    if await connection.fetchval(_OPEN, bound.tenant) >= MAX_OPEN:
        raise TooManyImports
    now: datetime = await connection.fetchval("SELECT service_now()")
    expires_at = now.replace(microsecond=0) + timedelta(seconds=SESSION_SECONDS)
    private, public_key = new_key()
    blob = signer.sealer.seal(private, place_of(bound, incarnation, expires_at))
    of = bound.user, bound.wallet_index, bound.app_client
    await connection.execute(
        _BEGIN, bound.tenant, bound.session, bound.agent, incarnation, bound.chain, *of, expires_at, now
    )
    owned = "import_session", bound.session, PRIVATE_HALF
    await connection.execute(_SEAL, bound.tenant, *owned, signer.sealer.key_version, blob)
    said = {"agentId": bound.agent, "chain": bound.chain}
    await tell(connection, call, "import.begun", "import_session", bound.session, **said)
    ends = clock.iso(expires_at)
    return {
        "import_session_id": bound.session,
        "public_key": public_key,
        "algorithm": ALGORITHM,
        "expires_at": ends,
        "attestation": _attest(signer, bound.session, public_key, ends, msgspec.to_builtins(aad)),
    }


def place_of(bound: Bound, incarnation: str, expires_at: datetime) -> Context:
    """Name where a private half belongs: in another row, or under another agent, person or time it does not open."""
    detail = sha256(
        fields(
            bound.agent,
            incarnation,
            bound.chain,
            bound.user or "",
            bound.wallet_index,
            bound.app_client or "",
            clock.unix_microseconds(expires_at),
        )
    ).hex()
    return Context(bound.tenant, "import_session", bound.session, PRIVATE_HALF, detail)


def _attest(
    signer: Signer, session: str, public_key: str, expires_at: str, aad: Mapping[str, Any]
) -> ImportAttestation:
    """The signer's word for a public key; its type keeps it from ever being a receipt."""
    key = signer.statement_keys.of("receipt")
    said = {
        "type": ATTESTATION,
        "importSessionId": session,
        "publicKey": public_key,
        "expiresAt": expires_at,
        "aad": dict(aad),
    }
    return ImportAttestation(key.kid, encode(key.sign(canonical(said))))


async def replace_key(
    signer: Signer, connection: Any, wanted: Bound, sealed: SealedKey, call: Call[ProvenTenant]
) -> tuple[str, str] | CustodyError:
    """Chain and address of the imported key; or the refusal, to be raised once its count is kept."""
    row = await connection.fetchrow(_FIND, wanted.tenant, wanted.session)
    if row is None:
        return ImportSessionInvalid()
    bound = Bound(
        wanted.session,
        wanted.tenant,
        row["agent_id"],
        row["chain"],
        str(row["user_id"]) if row["user_id"] else None,
        row["wallet_index"],
        row["app_client"],
    )
    of = wanted.agent, wanted.user, wanted.wallet_index, wanted.app_client
    if (bound.agent, bound.user, bound.wallet_index, bound.app_client) != of:
        await connection.execute(_FAILED, bound.tenant, bound.session, MAX_FAILURES)
        return ImportWrongAgent()
    incarnation = str(row["incarnation"])
    try:
        blob = await connection.fetchval(_BLOB, bound.tenant, "import_session", bound.session, PRIVATE_HALF)
        private = signer.sealer.open(blob or b"", place_of(bound, incarnation, row["expires_at"]))
    except Tampered:
        log.error("import session refused", extra={"tenant": bound.tenant, "agent": bound.agent})
        return ImportSessionInvalid()
    try:
        envelope = Envelope(sealed.ephemeral_public_key, sealed.iv, sealed.ciphertext, sealed.tag)
        secret = secret_of(bound.chain, open_envelope(envelope, private, bound))
        address = KEYS[bound.chain].address(KEYS[bound.chain].open(secret))
    except (EnvelopeRefused, NoKey, ValueError) as problem:
        await connection.execute(_FAILED, bound.tenant, bound.session, MAX_FAILURES)
        # Only who sealed to this session's key hears that it opens.
        return ImportEnvelope(f"The envelope opens, but {problem}.") if isinstance(problem, NoKey) else ImportEnvelope()
    place = bound.tenant, bound.agent, bound.chain
    if await connection.fetchval(_IN_USE, *place):
        return WalletInUse()
    if await connection.fetchval(_TAKEN, *place, address):
        return WalletTaken()
    if await connection.fetchval(_USED, bound.tenant, bound.session) is None:
        return ImportSessionInvalid()
    await _put(signer, connection, bound, incarnation, secret, address)
    said = {"agentId": bound.agent, "chain": bound.chain, "address": address}
    await tell(connection, call, "import.finished", "import_session", bound.session, **said)
    return bound.chain, address


async def _put(signer: Signer, connection: Any, bound: Bound, incarnation: str, secret: bytes, address: str) -> None:
    """The new key in place of the old one, which is kept beside it under a purpose of its own."""
    place, sealer = (bound.tenant, bound.agent, bound.chain), signer.sealer
    own = Context(bound.tenant, "agent", bound.agent, bound.chain, incarnation)
    try:
        old = sealer.open(await connection.fetchval(_BLOB, bound.tenant, "agent", bound.agent, bound.chain) or b"", own)
    except Tampered:
        log.error("key refused", extra={"tenant": bound.tenant, "agent": bound.agent})
        raise KeyTampered from None
    scope = f"before:{await connection.fetchval(_NUMBER, *place)}"
    before = f"{bound.chain}-{scope}"
    kept = sealer.seal(old, msgspec.structs.replace(own, purpose=before))
    await connection.execute(_SEAL, bound.tenant, "agent", bound.agent, before, sealer.key_version, kept)
    await connection.execute(_SET_ASIDE, *place, scope)
    await connection.execute(_ADDRESS, *place, address)
    await connection.execute(_REPLACE, *place, sealer.key_version, sealer.seal(secret, own))
    await ledger.raise_version(connection, AgentRef(bound.tenant, bound.agent))
    await connection.execute(_FORGET, bound.tenant, bound.session)

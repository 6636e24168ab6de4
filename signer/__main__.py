"""Start: harden, read the master key, open the pool, bind the sockets, serve."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence

from custody.chains import built_in, families
from custody.chains.family import Family
from custody.kit import db, environment, logs
from custody.kit.logs import logger
from custody.kit.poolers import ForgetfulPooler, refuse_forgetful
from custody.kit.schema_version import NewerDatabase, refuse_newer
from custody.kit.tasks import spawn
from custody.worker import harden, peers
from custody.worker.handlers import Handler, Table, table_of
from custody.worker.judging import JudgingSeals
from custody.worker.key_file import KeyFileProblem, WrongKeyFile
from custody.worker.keyring import Keyring
from custody.worker.life import run
from custody.worker.proofs import Proofs
from custody.worker.sealing import Sealer, Tampered
from custody.worker.server import Server
from custody.worker.token_keys import AGENT_KEYS, Tokens, load_or_make
from signer import delays, second_readers, settings, statement_keys
from signer.acknowledged_orders import AcknowledgedOrders
from signer.audit_journal import AuditLog, Journal
from signer.authority_seals import AuthoritySeals
from signer.breakers import Breakers
from signer.claims import Claims
from signer.context import Signer
from signer.identity_key import IdentityKey
from signer.key_holders import KeyHolders
from signer.master_key import MasterKeyFile
from signer.orders.built_in import KINDS
from signer.orders.kind import OrderKinds
from signer.policies import PolicySeals
from signer.prices import IssuedPrices
from signer.quotas import TenantQuotas
from signer.recipients import Recipients
from signer.rollback_journal import Heads
from signer.rotation.keys import MasterKeys
from signer.set_seals import SetSeals
from signer.settings import Settings
from signer.table import HANDLERS
from signer.write_batches import WriteBatches

log = logger("signer")
DATABASE_SECONDS = 30.0


async def serve(given: Settings, protections: dict[str, bool], kinds: OrderKinds, table: Table[Signer]) -> None:
    """Run until SIGTERM or SIGINT."""
    (given.worker.home / "signer").mkdir(mode=0o700, exist_ok=True)
    acknowledged = AcknowledgedOrders(given.worker.home / "signer" / "orders.log")
    acknowledged.load()
    pool = await db.open_pool_when_there(
        given.worker.database_url, size=given.worker.pool_size, seconds=DATABASE_SECONDS, opened=acknowledged.look
    )
    try:
        await refuse_forgetful(given.worker.database_url)
        await refuse_newer(pool)
        signer = await _build(pool, given, acknowledged, kinds)
        servers = [
            Server(signer, "signer", path, table, processes, given.worker.peer_uids, production=given.worker.production)
            for path, processes in ((given.sign_socket, peers.SIGN_SOCKET), (given.reveal_socket, peers.REVEAL_SOCKET))
        ]
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, signer.keys.call)
        watching = spawn(signer.keys.watch(), "keys")
        loading = spawn(second_readers.load(signer.kinds), "second readers")
        for server in servers:
            await server.start()
        sockets = [str(given.sign_socket), str(given.reveal_socket)]
        said = {"sockets": sockets, "uid": os.getuid(), "production": given.worker.production}
        log.info("signing", extra=said | protections)
        await stop.wait()
        await asyncio.gather(*(server.stop() for server in servers))
        watching.cancel()
        loading.cancel()
        await asyncio.gather(watching, loading, return_exceptions=True)
        signer.policies.heads.close()
        signer.claims.close()
        signer.audit_log.journal.close()
        signer.acknowledged.close()
    finally:
        await db.close_pool(pool)


async def _build(pool: db.Pool, given: Settings, acknowledged: AcknowledgedOrders, kinds: OrderKinds) -> Signer:
    """Everything a signer consists of; refuses to start with keys that do not belong to this database."""
    master = MasterKeyFile(given.master_key_file, given.master_key_unlock)
    sealer = Sealer(await _keyring(pool, master))
    identity = IdentityKey(given.identity_key_file)
    keys = MasterKeys(pool, master, sealer, identity)
    await keys.begin()
    async with pool.acquire() as connection:
        try:
            minter = await load_or_make(connection, sealer, identity.sealer, AGENT_KEYS, given.worker.issuer)
            statements = await statement_keys.load_or_make(connection, sealer)
        except Tampered:
            raise WrongKeyFile(
                f"The master key {master.path} does not match this database. Restore the right file."
            ) from None
    await keys.register()
    keys.holders = KeyHolders(given.worker.home / "signer" / "key-holders", master)
    await keys.holders.tell(pool)
    heads = Heads(given.worker.home / "signer" / "heads.log")
    heads.load()
    claims = Claims(given.worker.home / "signer" / "claims.log")
    claims.load()
    journal = Journal(given.worker.home / "signer" / "audit.log")
    journal.load()
    issued = _issued_prices(given)
    judging = JudgingSeals(identity.sealer)
    read = Tokens(pool, identity.sealer, AGENT_KEYS, minter)
    counters: Counter[str] = Counter()
    return Signer(
        pool=pool,
        sealer=sealer,
        keys=keys,
        minter=minter,
        statement_keys=statements,
        acknowledged=acknowledged,
        audit_log=AuditLog(journal, given.checkpoint_file),
        proofs=Proofs(pool, identity.sealer, read, judging, scoped=given.worker.scoped_platform_keys),
        policies=PolicySeals(sealer, heads),
        sets=SetSeals(sealer, heads),
        rule_facts=(Recipients(sealer), Breakers()),
        delay_of=delays.seconds_of,
        claims=claims,
        authority=AuthoritySeals(sealer, heads),
        judging=judging,
        chains=given.worker.chains,
        prices=(lambda now: given.prices) if issued is None else issued.at,
        issued_prices=issued,
        kinds=kinds,
        allow_unsafe_calls=given.allow_unsafe_calls,
        empty_policy="deny" if given.empty_policy == "deny" else "allow",
        agent_put_replaces=given.agent_put_replaces,
        allow_broad_secret_routes=given.allow_broad_secret_routes,
        allow_address_routes=given.allow_address_routes,
        allow_cookie_injection=given.allow_cookie_injection,
        imports=given.imports,
        user_wallet_policies=given.user_wallet_policies,
        quotas=TenantQuotas(pool, given.worker.quotas),
        counters=counters,
        writes=WriteBatches(pool, counters),
        public_url=given.worker.issuer,
    )


def _issued_prices(given: Settings) -> IssuedPrices | None:
    if given.prices_key is None:
        return None
    issued = IssuedPrices(given.worker.home / "signer" / "prices", given.prices_key, given.prices_max_age_seconds)
    issued.load()
    return issued


async def _keyring(pool: db.Pool, master: MasterKeyFile) -> Keyring:
    anything_sealed = await pool.fetchval("SELECT anything_sealed()")
    keyring, made = master.load(anything_sealed=anything_sealed)
    if made:
        said = {"path": str(master.path)}
        log.warning("a new master key was made; without it everything sealed is lost: back it up", extra=said)
    return keyring


def main(
    kinds: OrderKinds = KINDS,
    handlers: Sequence[Handler[Signer]] = HANDLERS,
    chain_families: Sequence[Family] = built_in.LISTED,
) -> None:
    """Run the process, which signs these kinds of orders of these families and carries out these commands."""
    logs.set_up()
    families.hand_in(chain_families)
    protections = harden.harden("signer")
    harden.assert_fast_curve()
    try:
        given = settings.read()
        environment.short("SERVICE_SIGN_SOCKET", given.sign_socket)
        environment.short("SERVICE_REVEAL_SOCKET", given.reveal_socket)
    except ValueError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(os.EX_CONFIG)
    run(
        "signer",
        serve(given, protections, kinds, table_of(handlers, "signer")),
        (KeyFileProblem, NewerDatabase, ForgetfulPooler),
    )


if __name__ == "__main__":
    main()

"""Start: harden, read the master key, open the pool, bind the sockets, serve."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import uvloop

from custody.kit import db, logs, tokens
from custody.kit.logs import logger
from signer import harden, master_key, peers, settings, statement_keys
from signer.audit_journal import AuditLog, Journal
from signer.context import Signer
from signer.heads import Heads
from signer.judging import JudgingSeals
from signer.policies import PolicySeals
from signer.proofs import PLATFORM, PLATFORM_KEY_MAC, Proofs
from signer.rotation.keys import Keys
from signer.sealing import Sealer, Tampered, fields
from signer.server import Server
from signer.settings import Settings
from signer.tokens import load_or_make

log = logger("signer")
DATABASE_SECONDS = 30.0
_BY_HAND = 130


async def serve(given: Settings, protections: dict[str, bool]) -> None:
    """Run until SIGTERM or SIGINT."""
    pool = await db.open_pool_when_there(given.database_url, size=given.pool_size, seconds=DATABASE_SECONDS)
    try:
        signer = await _build(pool, given)
        servers = [
            Server(signer, path, table, given.peer_uids, production=given.production)
            for path, table in ((given.sign_socket, peers.SIGN_SOCKET), (given.reveal_socket, peers.REVEAL_SOCKET))
        ]
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, signer.keys.ask)
        watching = asyncio.get_running_loop().create_task(signer.keys.watch(), name="keys")
        for server in servers:
            await server.start()
        sockets = [str(given.sign_socket), str(given.reveal_socket)]
        said = {"sockets": sockets, "uid": os.getuid(), "production": given.production}
        log.info("signing", extra=said | protections)
        await stop.wait()
        await asyncio.gather(*(server.stop() for server in servers))
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        signer.policies.heads.close()
        signer.audit_log.journal.close()
    finally:
        await db.close_pool(pool)


async def _build(pool: db.Pool, given: Settings) -> Signer:
    """Everything a signer consists of; refuses to start with keys that do not belong to this database."""
    sealer = Sealer(await _keyring(pool, given))
    keys = Keys(pool, given.master_key_file, sealer)
    await keys.begin()
    async with pool.acquire() as connection:
        try:
            minter = await load_or_make(connection, sealer, given.issuer)
            statements = await statement_keys.load_or_make(connection, sealer)
        except Tampered:
            raise master_key.MasterKeyProblem(
                f"The master key {given.master_key_file} does not open what is sealed in this database. "
                "Put the right one back."
            ) from None
    await keys.register()
    await _register_platform_key(pool, sealer, given)
    (given.home / "signer").mkdir(mode=0o700, exist_ok=True)
    heads = Heads(given.home / "signer" / "heads.log")
    heads.load()
    journal = Journal(given.home / "signer" / "audit.log")
    journal.load()
    judging = JudgingSeals(sealer)
    return Signer(
        pool=pool,
        sealer=sealer,
        keys=keys,
        minter=minter,
        statement_keys=statements,
        audit_log=AuditLog(journal, given.checkpoint_file),
        proofs=Proofs(pool, sealer, minter.keys, judging, scoped=given.scoped_platform_keys),
        policies=PolicySeals(sealer, heads),
        judging=judging,
        chains=given.chains,
        empty_policy="deny" if given.empty_policy == "deny" else "allow",
        agent_put_replaces=given.agent_put_replaces,
        allow_broad_secret_routes=given.allow_broad_secret_routes,
        allow_cookie_injection=given.allow_cookie_injection,
        public_url=given.issuer,
    )


async def _keyring(pool: db.Pool, given: Settings) -> master_key.Keyring:
    anything_sealed = await pool.fetchval("SELECT anything_sealed()")
    keyring, made = master_key.load(given.master_key_file, anything_sealed=anything_sealed)
    if made:
        said = {"path": str(given.master_key_file)}
        log.warning("a new master key was made; without it everything sealed is lost: back it up", extra=said)
    return keyring


async def _register_platform_key(pool: db.Pool, sealer: Sealer, given: Settings) -> None:
    """The operator's key: made on the first start, and known to the api only by its hash."""
    path = given.platform_key_file
    if not path.exists():
        if given.production:
            raise SystemExit(
                f"SERVICE_ENV=production needs a platform key that you made: write 32 to 256 characters to {path} "
                "(mode 0600)."
            )
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(tokens.new_api_key("pk") + "\n")
    if given.production and given.home in path.parents:
        raise SystemExit(
            "SERVICE_ENV=production refuses the platform key of the state folder; set SERVICE_PLATFORM_KEY_FILE "
            "to one of yours."
        )
    key = path.read_text().strip()
    if not 32 <= len(key) <= 256:
        raise SystemExit(f"The platform key in {path} must have 32 to 256 characters.")
    hashed = tokens.digest(key)
    mac = sealer.mac(PLATFORM_KEY_MAC, PLATFORM, fields(hashed, "*"))
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("DELETE FROM platform_keys WHERE from_file AND key_hash <> $1", hashed)
        await connection.execute(
            "INSERT INTO platform_keys (key_hash, prefix, from_file, mac) VALUES ($1, $2, true, $3) "
            "ON CONFLICT (key_hash) DO UPDATE SET from_file = true, mac = excluded.mac, scopes = NULL, "
            "revoked_at = NULL",
            hashed, tokens.prefix_of(key)[:6], mac,
        )  # fmt: skip


def main() -> None:
    """The process."""
    logs.set_up()
    protections = harden.harden()
    harden.assert_fast_curve()
    try:
        given = settings.read()
    except ValueError as problem:
        sys.exit(str(problem))
    run(serve(given, protections))


def run(life: Coroutine[Any, Any, None]) -> None:
    """Live it to its end; whatever else ends it, in any task, ends the process, so that a supervisor starts another."""
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        runner.run(life)
    except BaseException as problem:  # the edge of the process
        _end(problem)
    runner.close()


def _end(problem: BaseException) -> NoReturn:
    """At once: to close a loop that still has connections can take for ever, and its socket would answer nobody."""
    code = 1
    if isinstance(problem, KeyboardInterrupt):
        code = _BY_HAND
    elif isinstance(problem, SystemExit | master_key.MasterKeyProblem):
        sys.stderr.write(f"{problem}\n")
    else:
        log.critical("the signer ended", exc_info=problem)
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()

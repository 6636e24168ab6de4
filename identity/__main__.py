"""Start: harden, read the key that the signer derived, open the pool, bind the socket, serve."""

import asyncio
import os
import signal
import sys

from custody.chains import built_in, families
from custody.kit import db, environment, logs
from custody.kit.logs import logger
from custody.kit.poolers import ForgetfulPooler, refuse_forgetful
from custody.kit.schema_version import NewerDatabase, refuse_newer
from custody.kit.tasks import spawn
from custody.worker import harden, peers
from custody.worker.handlers import table_of
from custody.worker.judging import JudgingSeals
from custody.worker.key_file import KeyFileProblem
from custody.worker.keys import Keys
from custody.worker.life import run
from custody.worker.proofs import Proofs
from custody.worker.sealing import Sealer, Tampered
from custody.worker.server import Server
from custody.worker.token_keys import SESSION_KEYS, Tokens, load_or_make
from identity import key, settings
from identity.administration import operator_key
from identity.context import Identity
from identity.settings import Settings
from identity.sign_on import keys as provider_keys
from identity.table import HANDLERS

log = logger("identity")
DATABASE_SECONDS = 30.0


async def serve(given: Settings, protections: dict[str, bool]) -> None:
    """Run until SIGTERM or SIGINT."""
    pool = await db.open_pool_when_there(
        given.worker.database_url, size=given.worker.pool_size, seconds=DATABASE_SECONDS
    )
    try:
        await refuse_forgetful(given.worker.database_url)
        await refuse_newer(pool)
        identity = await _build(pool, given)
        server = Server(
            identity,
            "identity",
            given.socket,
            table_of(HANDLERS, "identity"),
            peers.IDENTITY_SOCKET,
            given.worker.peer_uids,
            production=given.worker.production,
        )
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, identity.keys.call)
        watching = spawn(identity.keys.watch(), "keys")
        given.socket.parent.mkdir(mode=0o700, exist_ok=True)
        await server.start()
        said = {"socket": str(given.socket), "uid": os.getuid(), "production": given.worker.production}
        log.info("serving people", extra=said | protections)
        await stop.wait()
        await server.stop()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    finally:
        await db.close_pool(pool)


async def _build(pool: db.Pool, given: Settings) -> Identity:
    """Everything that identity consists of; refuses to start with a key that does not belong to this database."""
    file = key.of(given.key_file)
    sealer = Sealer(await key.when_there(file))
    keys = Keys(pool, file, sealer, "identity_fingerprint")
    await keys.begin()
    async with pool.acquire() as connection:
        try:
            minter = await load_or_make(connection, sealer, sealer, SESSION_KEYS, given.worker.issuer)
        except Tampered:
            raise KeyFileProblem(
                f"The identity key {given.key_file} does not match this database. {file.cure_other}"
            ) from None
    await operator_key.register(
        pool, sealer, given.platform_key_file, home=given.worker.home if given.worker.production else None
    )
    judging = JudgingSeals(sealer)
    read = Tokens(pool, sealer, SESSION_KEYS, minter)
    identity = Identity(
        pool=pool,
        sealer=sealer,
        keys=keys,
        minter=minter,
        proofs=Proofs(pool, sealer, read, judging, scoped=given.worker.scoped_platform_keys),
        judging=judging,
        chains=given.worker.chains,
        allow_self_registration=given.allow_self_registration,
        limits=given.worker.quotas,
        oauth_endpoints=given.oauth_endpoints,
        oauth_clients=given.oauth_clients,
        oauth_key_sets=given.oauth_key_sets,
        login_redirects=given.login_redirects,
        public_url=given.worker.issuer,
    )
    async with pool.acquire() as connection, connection.transaction():
        await provider_keys.register_own(connection, identity)
    return identity


def main() -> None:
    """The process."""
    logs.set_up()
    families.hand_in(built_in.LISTED)
    protections = harden.harden("identity")
    try:
        given = settings.read()
        environment.short("SERVICE_IDENTITY_SOCKET", given.socket)
    except ValueError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(os.EX_CONFIG)
    run("identity", serve(given, protections), (KeyFileProblem, NewerDatabase, ForgetfulPooler))


if __name__ == "__main__":
    main()

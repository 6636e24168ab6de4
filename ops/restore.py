"""`custody restore`: a backup into an empty database, the proof that it opens, and the operator's word that it counts.

The database is whole or as empty as before: everything is written in one transaction. Roles and grants are as
`custody migrate` makes them, whatever the owner is called here. What the signer has seen is not touched, so one that
saw a later state refuses what is older until `--accept`.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from custody.kit import environment
from custody.kit.errors import CustodyError
from custody.protocol.client import InternalFault, SignerClient
from custody.protocol.signer.operation import AcceptRestore, RestoreAccepted
from ops import owners, places
from ops.backup import RestoreRefused
from ops.holders import UNLOCK
from ops.platform_keys import operator
from ops.runtime import Python
from ops.settings import Settings
from ops.unlocking import NotOpened, Unlocker


async def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """Do what was asked; 1 where a seal does not hold, 2 where it could not be looked at."""
    if chosen.accept:
        if chosen.folder is not None or chosen.verify:
            print("custody: --accept takes no other option and needs a running signer", file=sys.stderr)
            return 2
        return await _accept(settings)
    if chosen.folder is None and not chosen.verify:
        print("custody: name the backup's folder, or --verify, or --accept", file=sys.stderr)
        return 2
    if chosen.folder is not None:
        places.insist_on_owner(settings.home)
        home = places.open_home(settings.home, settings.uid_base)
        return await _restore(settings, home, chosen.folder.absolute(), verify=chosen.verify)
    # A look makes nothing, least of all a database.
    home = places.found_home(settings.home, settings.uid_base)
    if settings.database_url is None and not home.file("postgres").is_dir():
        raise RestoreRefused(f"no database in {home.path}; set SERVICE_HOME or SERVICE_DATABASE_URL")
    async with owners.owner_url(settings, home) as url:
        return await _verify(settings, home, url)


async def _restore(settings: Settings, home: places.Home, folder: Path, *, verify: bool) -> int:
    # A container with a master key has nothing with which rows could be written, nor needs it to look or to accept.
    from ops.restore_rows import known_manifest, restore_rows  # noqa: PLC0415

    manifest = await known_manifest(folder)
    lock = places.Lock(home.file("lock"))
    if not lock.take():
        raise RestoreRefused(f"custody runs in {home.path}; stop it first")
    try:
        async with owners.owner_url(settings, home) as url:
            limits = settings.connection_limits
            await restore_rows(url, home, folder, manifest, settings.given_database_urls, limits)
            code = await _verify(settings, home, url) if verify else 0
    finally:
        lock.release()
    if code == 0:
        print(
            "Start it now. If its signer saw a later state, it refuses the older one until `custody restore --accept`."
        )
    return code


async def _verify(settings: Settings, home: places.Home, url: str) -> int:
    """Each worker's in a process of its own: no key is ever in this one."""
    print("Verifying every sealed value and every MAC", flush=True)
    given = {
        **settings.environment,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "SERVICE_HOME": str(home.path),
        "SERVICE_MASTER_KEY_FILE": str(settings.master_key_file.absolute()),
        "SERVICE_IDENTITY_KEY_FILE": str(settings.identity_key_file.absolute()),
    }
    if not os.access(home.file("db", "identity.url"), os.R_OK):
        # In the signer's container; who restores has the owner's address.
        given.setdefault("SERVICE_DATABASE_URL_IDENTITY", url)
    codes = []
    unlocker = Unlocker(settings, home, lambda text: print(text, file=sys.stderr, flush=True))
    kept: tuple[int, ...] = ()
    if unlocker.needed:
        try:
            kept = (await unlocker.key(Python(Path(sys.executable), {"PYTHONPATH": given["PYTHONPATH"]})),)
        except NotOpened as problem:
            raise RestoreRefused(str(problem)) from None
        given[UNLOCK] = f"fd:{kept[0]}"
    # In this order: the signer derives the key that the other needs, and it alone gets the key of a sealed file.
    for module, descriptors in (("signer.verify", kept), ("identity.verify", ())):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", module),
            env=given,
            cwd="/",
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=descriptors,
        )
        codes.append(await process.wait())
    unlocker.close()
    return max(codes, key=abs)


async def _accept(settings: Settings) -> int:
    signer = SignerClient(str(environment.sign_socket(settings.environment)), "operator")
    try:
        accepted = (await signer.ask(AcceptRestore(), operator(settings))).answer
    except CustodyError as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    except InternalFault as problem:
        print(f"custody: {problem} Its log says more.", file=sys.stderr)
        return 1
    finally:
        await signer.close()
    return _say(accepted)


def _say(data: RestoreAccepted) -> int:
    if data.orders:
        print("Accepted: orders that this signer acknowledged are gone. Their signatures are in their askers' hands.")
    if data.agents or data.logs:
        print(
            f"Accepted: the rules and signers of {data.agents} agents and {len(data.logs)} audit logs as they are now."
        )
        for name in [*data.named, *(f"the log of {log}" for log in data.logs)]:
            print(f"  {name}")
        print("Decisions made between backup and restore are lost; check them before anything is signed.")
    elif not data.orders:
        print("Nothing was accepted: no rules, no signers and no audit log are older than this signer has seen.")
    for name in data.refused:
        print(f"  NOT the log of {name}: its newest checkpoint was not signed by this service; docs/audit.md")
    for name in data.stopped:
        print(f"  NOT the log of {name}: it is not an older state; `custody audit mend {name}` repairs it")
    return 1 if data.refused or data.stopped else 0

"""`custody platform-keys`: keys of the operator that do some things only; made on this machine, not over HTTP."""

import argparse
import sys
from collections.abc import Sequence

from custody.kit import environment, ids
from custody.kit.callers import Origin, PlatformCaller, Proof
from custody.kit.errors import CustodyError
from custody.protocol.client import SignerClient
from custody.protocol.identity.credentials import (
    CreatePlatformKey,
    ListPlatformKeys,
    NewPlatformKey,
    PlatformKey,
    RevokePlatformKey,
)
from ops.settings import Settings


async def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """Do it and say what was done; 1 with a sentence where it was not."""
    if chosen.act == "revoke" and not ids.is_uuid(chosen.id):
        # Identity reads messages strictly: it would close the connection without a word.
        print(
            f"custody: {chosen.id} is not an id of a platform key; `custody platform-keys list` shows the ids",
            file=sys.stderr,
        )
        return 1
    signer = SignerClient(str(environment.identity_socket(settings.environment)), "operator")
    try:
        lines = await _carried_out(signer, operator(settings), chosen)
    except CustodyError as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    finally:
        await signer.close()
    print("\n".join(lines))
    return 0


async def _carried_out(signer: SignerClient, caller: PlatformCaller, chosen: argparse.Namespace) -> Sequence[str]:
    """Carry out the command, and return what to print of it."""
    if chosen.act == "create":
        return _report_new((await signer.ask(CreatePlatformKey(chosen.name, chosen.scope), caller)).answer)
    if chosen.act == "revoke":
        revoked = (await signer.ask(RevokePlatformKey(chosen.id), caller)).answer
        return (f"The platform key {revoked.deleted} is revoked.",)
    return [_line(key) for key in (await signer.ask(ListPlatformKeys(), caller)).answer.keys]


def operator(settings: Settings) -> PlatformCaller:
    """The operator of this state folder, by the platform key of its file."""
    key = settings.platform_key_file.read_text().strip()
    return PlatformCaller(proof=Proof("platform_key", key), origin=Origin(ids.new_uuid()), key_prefix=key[:6])


def _report_new(made: NewPlatformKey) -> Sequence[str]:
    return (
        f"Platform key {made.name!r}, with the scopes: {', '.join(made.scopes)}",
        f"  id   {made.id}",
        f"  key  {made.key}",
        "Keep the key now: it is not shown again. Send it as X-Service-Platform-Key.",
    )


def _line(key: PlatformKey) -> str:
    state = f"revoked {key.revoked_at}" if key.revoked_at else f"since {key.created_at}"
    name = "the key file" if key.from_file else key.name
    scopes = "everything" if key.scopes is None else ", ".join(key.scopes)
    return f"{key.id or '-':36}  {key.prefix}...  {name}: {scopes} ({state})"

"""`custody platform-keys`: keys of the operator that do some things only; made on this machine, not over HTTP."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from custody.cli.settings import Settings
from custody.kit import environment, ids
from custody.kit.callers import Origin, PlatformCaller, Proof
from custody.kit.errors import CustodyError
from custody.protocol.client import SignerClient, asked
from custody.protocol.messages import Body, CreatePlatformKey, ListPlatformKeys, RevokePlatformKey


async def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """Do it and say what was done; 1 with a sentence where it was not."""
    signer = SignerClient(str(environment.sign_socket(settings.environment)), "operator")
    try:
        data = await asked(signer, _message(chosen), operator(settings))
    except CustodyError as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    finally:
        await signer.close()
    print("\n".join(_told(chosen.act, data)))
    return 0


def _message(chosen: argparse.Namespace) -> Body:
    if chosen.act == "create":
        return CreatePlatformKey(chosen.name, chosen.scope)
    return RevokePlatformKey(chosen.id) if chosen.act == "revoke" else ListPlatformKeys()


def operator(settings: Settings) -> PlatformCaller:
    """The operator of this state folder, by the platform key of its file."""
    key = settings.platform_key_file.read_text().strip()
    return PlatformCaller(proof=Proof("platform_key", key), origin=Origin(ids.new_uuid()), key_prefix=key[:6])


def _told(act: str, data: dict[str, Any]) -> Sequence[str]:
    if act == "create":
        return (
            f"Platform key {data['name']!r}, which may: {', '.join(data['scopes'])}",
            f"  id   {data['id']}",
            f"  key  {data['key']}",
            "Keep the key now: it is not shown again. Send it as X-Service-Platform-Key.",
        )
    if act == "revoke":
        return (f"The platform key {data['deleted']} works no more.",)
    return [_line(key) for key in data["keys"]]


def _line(key: dict[str, Any]) -> str:
    state = f"revoked {key['revokedAt']}" if key["revokedAt"] else f"since {key['createdAt']}"
    name = "the key file" if key["fromFile"] else key["name"]
    scopes = "everything" if key["scopes"] is None else ", ".join(key["scopes"])
    return f"{key['id'] or '-':36}  {key['prefix']}...  {name}: {scopes} ({state})"

"""`custody keys`: give the master key a new version while the service runs, and say which there are. Design 5."""

import argparse
import sys
from typing import Any

from custody.cli.platform_keys import operator
from custody.cli.settings import Settings
from custody.kit import environment
from custody.kit.errors import CustodyError
from custody.protocol.client import InternalFault, SignerClient, asked
from custody.protocol.messages import RotateKeys

# A row that somebody held or changed meanwhile is left for the next walk; more than a few walks never find one.
WALKS = 5
_EVERY = 10_000


async def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """Do it and say what was done; 1 with a sentence where it was not."""
    signer = SignerClient(str(environment.sign_socket(settings.environment)), "operator")
    try:
        if chosen.act == "status":
            return _show(await _ask(signer, settings, RotateKeys("status")))
        if chosen.at_once and not chosen.retire:
            print("custody: --at-once goes with --retire", file=sys.stderr)
            return 2
        if chosen.retire:
            return _retired(await _ask(signer, settings, RotateKeys("retire", force=chosen.at_once)))
        if chosen.prepare:
            return _prepared(await _ask(signer, settings, RotateKeys("prepare")))
        return await _rotate(signer, settings, new=chosen.new)
    except CustodyError as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    except InternalFault as problem:
        print(f"custody: {problem} Its log says more.", file=sys.stderr)
        return 1
    finally:
        await signer.close()


async def _ask(signer: SignerClient, settings: Settings, act: RotateKeys) -> Any:
    return await asked(signer, act, operator(settings))


async def _rotate(signer: SignerClient, settings: Settings, *, new: bool) -> int:
    begun = await _ask(signer, settings, RotateKeys("begin", force=new))
    version = begun["version"]
    print(
        f"Version {version} seals from now on." if begun["begun"] else f"Going on with version {version}.", flush=True
    )
    if begun["begun"]:
        print("Make a copy of the master key file now: new wallets can be opened with this version alone.", flush=True)
    total = left = broken = 0
    finished: dict[str, Any] = {"left": {}}
    for _ in range(WALKS):
        done, broken = await _walk(signer, settings)
        total += done
        finished = await _ask(signer, settings, RotateKeys("finish"))
        left = sum(finished["left"].values())
        if left <= broken:
            break
    print(f"{total} values were made anew.")
    if not left:
        print(f"Everything is under version {version}. Older ones can go with `custody keys rotate --retire`.")
        return 0
    for what, count in finished["left"].items():
        print(f"custody: {count} {what} are still under an older version", file=sys.stderr)
    if broken:
        print(
            "custody: these are not what the signer wrote, so they were not made anew; its log names them",
            file=sys.stderr,
        )
    return 1


async def _walk(signer: SignerClient, settings: Settings) -> tuple[int, int]:
    """Once through everything: how much was made anew, how much could not be."""
    done = broken = told = 0
    table, after = None, None
    while True:
        step = await _ask(signer, settings, RotateKeys("step", table, after))
        done, broken = done + step["done"], broken + step["broken"]
        if done - told >= _EVERY:
            told = done
            print(f"  {done} values so far", flush=True)
        if (table := step["table"]) is None:
            return done, broken
        after = step["after"]


def _prepared(data: dict[str, Any]) -> int:
    print(
        f"Version {data['version']} is in the file and seals nothing yet. Copy the file to every host that has a "
        "signer, keep a copy apart, then run `custody keys rotate`."
    )
    return 0


def _retired(data: dict[str, Any]) -> int:
    gone = ", ".join(map(str, data["retired"]))
    kept = f"Retired: {gone}. Backups made before still need them: keep those lines with those backups."
    print(kept if gone else "There is no older version to retire.")
    for what in ("recovery_codes", "sessions"):
        if count := data.get(what):
            print(f"Ended: {count} {what.replace('_', ' ')}.")
    return 0


def _show(data: dict[str, Any]) -> int:
    print(f"The master key file is {data['file']}; version {data['sealing']} seals.")
    missing = False
    for one in data["versions"]:
        used = ", ".join(f"{count} {what}" for what, count in one["uses"].items()) or "nothing"
        state = _state(one, data["sealing"])
        print(f"  {one['version']:>4}  {state}: {used}")
        missing = missing or (not one["here"] and one["retiredAt"] is None)
    if data["oldSessions"]:
        print(f"  {data['oldSessions']} sessions may hold a refresh token of an older version.")
    if missing:
        print("custody: this signer's file lacks a version; copy its line from another host", file=sys.stderr)
    return int(missing)


def _state(one: dict[str, Any], sealing: int) -> str:
    if one["retiredAt"]:
        return f"retired {one['retiredAt']}{', still in the file' if one['here'] else ''}"
    where = "" if one["here"] else ", NOT in this file"
    if one["begunAt"] is None:
        return f"prepared {one['addedAt']}{where}"
    return f"{'seals' if one['version'] == sealing else 'opens'}, since {one['begunAt']}{where}"

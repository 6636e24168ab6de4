"""`custody keys`: give the master key a new version while the service runs, and say which there are."""

import argparse
import sys
from pathlib import Path
from typing import Any

from custody.kit import environment
from custody.kit.errors import CustodyError
from custody.kit.key_head import MalformedHead
from custody.protocol.client import InternalFault, SignerClient
from custody.protocol.command import Command
from custody.protocol.common import Resealed
from custody.protocol.identity.credentials import EndedForRotation, RotateIdentity
from custody.protocol.signer.operation import (
    KeyVersion,
    KeyVersions,
    ReadyToRetire,
    RotateKeys,
    StillOlder,
    VersionBegun,
    VersionsRetired,
)
from custody.protocol.workers import Workers
from ops.holders import read_head
from ops.platform_keys import operator
from ops.settings import Settings

# A row that somebody held or changed meanwhile is left for the next walk; more than a few walks never find one.
WALKS = 5
_EVERY = 10_000


async def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """Do it and say what was done; 1 with a sentence where it was not."""
    workers = Workers(
        SignerClient(str(environment.sign_socket(settings.environment)), "operator"),
        SignerClient(str(environment.identity_socket(settings.environment)), "operator"),
    )
    try:
        if chosen.act == "status":
            return _show(await _ask(workers, settings, RotateKeys("status"), KeyVersions))
        if chosen.at_once and not chosen.retire:
            print("custody: --at-once requires --retire", file=sys.stderr)
            return 2
        if chosen.retire:
            return await _retire(workers, settings, at_once=chosen.at_once)
        if chosen.prepare:
            return _report_begun(await _ask(workers, settings, RotateKeys("prepare"), VersionBegun))
        return await _rotate(workers, settings, new=chosen.new)
    except CustodyError as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    except InternalFault as problem:
        print(f"custody: {problem} Its log says more.", file=sys.stderr)
        return 1
    finally:
        await workers.close()


async def _ask[A](workers: Workers, settings: Settings, act: Command[Any], kind: type[A]) -> A:
    """The answer that this act has, of those that its command may have."""
    answer = (await workers.ask(act, operator(settings))).answer
    if not isinstance(answer, kind):
        raise InternalFault(f"{type(act).__name__} was answered with {type(answer).__name__}.")
    return answer


async def _rotate(workers: Workers, settings: Settings, *, new: bool) -> int:
    begun = await _ask(workers, settings, RotateKeys("begin", force=new), VersionBegun)
    version = begun.version
    print(f"Version {version} seals from now on." if begun.begun else f"Continuing with version {version}.", flush=True)
    if begun.begun:
        print("Copy the master key file now: new wallets can be opened only with this version.", flush=True)
    total = left = broken = 0
    finished = StillOlder(version, {})
    for _ in range(WALKS):
        done, broken = await _walk(workers, settings)
        total += done
        finished = await _ask(workers, settings, RotateKeys("finish"), StillOlder)
        left = sum(finished.left.values())
        if left <= broken:
            break
    print(f"{total} values were sealed again.")
    if not left:
        print(f"Every value uses version {version}. Remove older versions with `custody keys rotate --retire`.")
        return 0
    for what, count in finished.left.items():
        print(f"custody: {count} {what} still use an older version", file=sys.stderr)
    if broken:
        print(
            "custody: these fail their integrity check and were not sealed again; the workers' logs name them",
            file=sys.stderr,
        )
    return 1


async def _walk(workers: Workers, settings: Settings) -> tuple[int, int]:
    """Once through everything of both workers: how much was made again, how much could not be."""
    done = broken = told = 0
    for message in (RotateKeys, RotateIdentity):
        table, after = None, None
        while True:
            step = await _ask(workers, settings, message("step", table, after), Resealed)
            done, broken = done + step.done, broken + step.broken
            if done - told >= _EVERY:
                told = done
                print(f"  {done} values so far", flush=True)
            if (table := step.table) is None:
                break
            after = step.after
    return done, broken


async def _retire(workers: Workers, settings: Settings, *, at_once: bool) -> int:
    """Take older versions out; `at_once` ends first what only time would end, once nothing else is in the way."""
    ended: dict[str, int] = {}
    if at_once:
        await _ask(workers, settings, RotateKeys("ready"), ReadyToRetire)
        ended = (await _ask(workers, settings, RotateIdentity("end"), EndedForRotation)).ended
    gone = ", ".join(map(str, (await _ask(workers, settings, RotateKeys("retire"), VersionsRetired)).retired))
    kept = f"Retired: {gone}. Backups made before still need them: keep those lines with those backups."
    print(kept if gone else "No older version to retire.")
    if gone:
        print("Restart the service when it suits: the memory of signer and identity holds them until then.")
    for what in ("recovery_codes", "sessions"):
        if count := ended.get(what):
            print(f"Ended: {count} {what.replace('_', ' ')}.")
    return 0


def _report_begun(prepared: VersionBegun) -> int:
    print(
        f"Version {prepared.version} is in the file and seals nothing yet. Copy the file to every host with a signer, "
        f"keep a backup of it, then run `custody keys rotate`."
    )
    return 0


def _show(status: KeyVersions) -> int:
    print(f"The master key file is {status.file}; version {status.sealing} seals.")
    _show_holders(Path(status.file))
    missing = False
    for one in status.versions:
        used = ", ".join(f"{count} {what}" for what, count in one.uses.items()) or "nothing"
        print(f"  {one.version:>4}  {_state(one, status.sealing)}: {used}")
        missing = missing or (not one.here and one.retired_at is None)
    if status.old_sessions:
        print(f"  {status.old_sessions} sessions may hold a refresh token of an older version.")
    if missing:
        print("custody: this signer's file lacks a version; copy its line from another host", file=sys.stderr)
    return int(missing)


def _show_holders(file: Path) -> None:
    """Say who opens the file, where this person may read it."""
    try:
        head = read_head(file)
    except (OSError, MalformedHead):
        return
    if head is not None:
        print(f"It is sealed (file {head.file}); each of these opens it:")
        for one in head.holders:
            print(f"  {one.kind} {one.name}")


def _state(one: KeyVersion, sealing: int) -> str:
    if one.retired_at:
        return f"retired {one.retired_at}{', still in the file' if one.here else ''}"
    where = "" if one.here else ", NOT in this file"
    if one.begun_at is None:
        return f"prepared {one.added_at}{where}"
    return f"{'seals' if one.version == sealing else 'opens'}, since {one.begun_at}{where}"

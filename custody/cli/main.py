"""The `custody` command and its sub-commands. Design 10."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from custody.cli import places, recovery_words
from custody.cli.settings import MODULES, PROCESSES, Settings, load
from custody.kit.environment import BadSetting

_RUN = "custody run --agent ID [--expires-in 24h] [--ca FILE] -- PROGRAM [ARGUMENT ...]"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="custody", description="Lets agents spend money and call APIs without a key.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start everything here and keep it running until Ctrl-C")
    up.add_argument("--no-demo", action="store_true", help="do not walk through the demo on the first start")
    for process in PROCESSES:
        commands.add_parser(process, help=f"run only the {process}")
    run = commands.add_parser("run", usage=_RUN, help="start a program that calls APIs through the proxy, as an agent")
    run.add_argument("--agent", required=True, metavar="ID", help="the agent that the program acts as")
    run.add_argument("--expires-in", default="24h", metavar="TIME", help="how long its token is good for (24h)")
    run.add_argument("--ca", type=Path, metavar="FILE", help="the proxy's CA certificate, if it lies elsewhere")
    commands.add_parser("migrate", help="bring the database up to date and write each process' address")
    _declare_platform_keys(commands)
    _declare_audit(commands)
    _declare_receipt(commands)
    recovery_words.declare(commands)
    commands.add_parser("demo", help="walk through the service that runs here")
    commands.add_parser("console", help="decide what waits for a person", add_help=False)
    commands.add_parser("doctor", help="say what is wrong with this installation and how to mend it")
    commands.add_parser("openapi", help="print the contract")
    return top


def _declare_platform_keys(commands: Any) -> None:
    top = commands.add_parser("platform-keys", help="make, list and revoke platform keys with scopes")
    acts = top.add_subparsers(dest="act", required=True, metavar="create|list|revoke")
    create = acts.add_parser("create", help="make a key, which is shown this once")
    create.add_argument("--name", required=True, help="what it is for, to tell it from the others")
    scope = "what it may do, for example platform:tenant:read; give it as often as you need"
    create.add_argument("--scope", required=True, action="append", help=scope)
    acts.add_parser("list", help="show every key, but not what only its holder knows")
    revoke = acts.add_parser("revoke", help="end a key at once")
    revoke.add_argument("id", help="the id that `list` shows")


def _declare_receipt(commands: Any) -> None:
    top = commands.add_parser("receipt", help="check a receipt, without asking anybody")
    verify = top.add_subparsers(dest="act", required=True, metavar="verify").add_parser(
        "verify", help="say what a receipt proves, and what it does not"
    )
    verify.add_argument("file", type=Path, metavar="FILE", help="the receipt as the service answered it")
    keys = "the service's public keys, from /.well-known/jwks.json"
    verify.add_argument("--jwks", type=Path, required=True, metavar="FILE", help=keys)
    policies = "policies as the service answered them: are they the ones that judged?"
    verify.add_argument("--policies", type=Path, metavar="FILE", help=policies)


def _declare_audit(commands: Any) -> None:
    top = commands.add_parser("audit", help="check what was exported of the audit log")
    verify = top.add_subparsers(dest="act", required=True, metavar="verify").add_parser(
        "verify", help="check an NDJSON export, offline"
    )
    verify.add_argument("file", type=Path, metavar="FILE", help="the export")
    keys = "the public keys, as /.well-known/jwks.json gave them; keep a copy that nobody else can write"
    verify.add_argument("--jwks", type=Path, metavar="FILE", help=keys)
    earlier = "a checkpoint that you kept: show that the log goes on from it"
    verify.add_argument("--checkpoint", type=Path, metavar="OLD", help=earlier)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["console"]:
        return _console(given[1:])
    ours, program = _split(given)
    chosen = parser().parse_args(ours)
    try:
        settings = load(os.environ)
        return _run(chosen, settings, program)
    except BadSetting as problem:
        print(f"custody: {problem}", file=sys.stderr)
        return 2
    except (OSError, RuntimeError) as problem:
        print(f"custody: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our own words, and for `custody run` the program's: nothing behind the first `--` is ever read as ours."""
    if arguments[:1] != ["run"]:
        return arguments, []
    at = arguments.index("--") if "--" in arguments else len(arguments)
    ours, program = arguments[:at], arguments[at + 1 :]
    if not program and not {"-h", "--help"}.intersection(ours):
        parser().exit(2, f"custody run: put `--` and the program behind the options:\n  {_RUN}\n")
    return ours, program


def _run(chosen: argparse.Namespace, settings: Settings, program: Sequence[str]) -> int:
    if chosen.command in PROCESSES:
        # As under the supervisor: the assertions of the proxy's library are dear.
        os.environ |= {"PYTHONOPTIMIZE": "1"} if chosen.command == "proxy" else {}
        return _become(MODULES[chosen.command])
    if chosen.command == "openapi":
        return _become("api", "--openapi")
    if chosen.command == "run":
        from custody.cli import run  # noqa: PLC0415

        return run.run(settings, chosen.agent, chosen.expires_in, chosen.ca, program)
    # Each imports what it needs: `custody openapi` must not pay for Postgres, nor `up` for the demo.
    if chosen.command == "up":
        from custody.cli import up  # noqa: PLC0415

        return asyncio.run(up.run(settings, demo=not chosen.no_demo))
    if chosen.command == "receipt":
        from custody.cli import receipt  # noqa: PLC0415

        return receipt.run(chosen)
    if chosen.command == "doctor":
        from custody.cli import doctor  # noqa: PLC0415

        return asyncio.run(doctor.run(settings))
    if chosen.command == "platform-keys":
        from custody.cli import platform_keys  # noqa: PLC0415

        return asyncio.run(platform_keys.run(settings, chosen))
    if chosen.command == "audit":
        from custody.cli import audit  # noqa: PLC0415

        return audit.run(chosen)
    if chosen.command == "keys":
        from custody.cli import keys  # noqa: PLC0415

        return asyncio.run(keys.run(settings, chosen))
    if chosen.command == "backup":
        from custody.cli import backup  # noqa: PLC0415

        return asyncio.run(backup.run(settings, chosen.folder))
    if chosen.command == "restore":
        from custody.cli import restore  # noqa: PLC0415

        return asyncio.run(restore.run(settings, chosen))
    if chosen.command == "demo":
        from custody.cli import demo  # noqa: PLC0415

        return asyncio.run(demo.run(settings))
    return asyncio.run(_migrate(settings))


def _console(arguments: list[str]) -> int:
    """Its words are its own, and it needs no installation of the service: only an address."""
    if find_spec("console") is None:
        # An image of the service has the processes, not what people run on their own machines.
        print(
            "custody console: not part of this installation; it runs from a checkout on your own machine",
            file=sys.stderr,
        )
        return 2
    return _become("console", *arguments)


def _become(module: str, *arguments: str) -> int:
    """Turn into another process; the command never imports one (processes share only `custody`)."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *arguments])  # noqa: S606 - no shell, fixed words


async def _migrate(settings: Settings) -> int:
    from custody.cli.migrate import migrate  # noqa: PLC0415
    from custody.cli.owners import owner_url  # noqa: PLC0415
    from custody.cli.supervisor import given_urls  # noqa: PLC0415

    home = places.open_home(settings.home)
    async with owner_url(settings, home) as url:
        applied = await migrate(url, home, given=given_urls(settings))
    print(f"Applied {', '.join(applied)}." if applied else "The database is up to date.")
    return 0

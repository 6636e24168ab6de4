"""The `custody` command and its sub-commands. Design 10."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from custody.cli import places
from custody.cli.settings import Settings, load
from custody.kit.environment import BadSetting

_PROCESSES = ("signer", "api", "scheduler")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="custody", description="Lets agents spend money and call APIs without a key.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start everything here and keep it running until Ctrl-C")
    up.add_argument("--no-demo", action="store_true", help="do not walk through the demo on the first start")
    for process in _PROCESSES:
        commands.add_parser(process, help=f"run only the {process}")
    commands.add_parser("migrate", help="bring the database up to date and write each process' address")
    commands.add_parser("demo", help="walk through the service that runs here")
    commands.add_parser("doctor", help="say what is wrong with this installation and how to mend it")
    commands.add_parser("openapi", help="print the contract")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command and return its exit status."""
    chosen = parser().parse_args(arguments)
    try:
        settings = load(os.environ)
        return _run(chosen, settings)
    except BadSetting as problem:
        print(f"custody: {problem}", file=sys.stderr)
        return 2
    except (OSError, RuntimeError) as problem:
        print(f"custody: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(chosen: argparse.Namespace, settings: Settings) -> int:
    if chosen.command in _PROCESSES:
        return _become(chosen.command)
    if chosen.command == "openapi":
        return _become("api", "--openapi")
    # Each imports what it needs: `custody openapi` must not pay for Postgres, nor `up` for the demo.
    if chosen.command == "up":
        from custody.cli import up  # noqa: PLC0415

        return asyncio.run(up.run(settings, demo=not chosen.no_demo))
    if chosen.command == "doctor":
        from custody.cli import doctor  # noqa: PLC0415

        return asyncio.run(doctor.run(settings))
    if chosen.command == "demo":
        from custody.cli import demo  # noqa: PLC0415

        return asyncio.run(demo.run(settings))
    return asyncio.run(_migrate(settings))


def _become(module: str, *arguments: str) -> int:
    """Turn into another process; the command never imports one (processes share only `custody`)."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *arguments])  # noqa: S606 - no shell, fixed words


async def _migrate(settings: Settings) -> int:
    from custody.cli.migrate import migrate  # noqa: PLC0415
    from custody.cli.postgres import EmbeddedPostgres, PostgresFailed  # noqa: PLC0415
    from custody.cli.supervisor import given_urls  # noqa: PLC0415

    home, server, url = places.open_home(settings.home), None, settings.database_url
    owner_file = home.file("db", "owner.url")
    if url is None:
        server = EmbeddedPostgres(home.file("postgres"), home.file("log", "postgres.log"))
        try:
            url = await server.start()
            places.write_private(owner_file, url + "\n")
        except PostgresFailed:
            # It runs already, under `custody up`.
            server = None
            if not owner_file.exists():
                raise
            url = owner_file.read_text().strip()
    try:
        applied = await migrate(url, home, given=given_urls(settings))
    finally:
        if server is not None:
            await server.stop()
    print(f"Applied {', '.join(applied)}." if applied else "The database is up to date.")
    return 0

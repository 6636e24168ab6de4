"""`custody up`: everything in the foreground, the demo on the first start, and what to try next. Design 10."""

import asyncio
import shlex
import sys
import time
from pathlib import Path

import asyncpg

from custody.cli.postgres import PostgresFailed
from custody.cli.settings import Settings
from custody.cli.supervisor import CHAIN_URL, LOCAL_CHAIN, NotReady, Supervisor, say, stop_on_signals


async def run(settings: Settings, *, demo: bool) -> int:
    """Bring everything up, stay until asked to stop, take everything down."""
    began = time.monotonic()
    # A laptop has no chain to offer but its own; an operator's choice wins.
    if not settings.production:
        settings.environment.setdefault("SERVICE_DEFAULT_CHAIN_ID", LOCAL_CHAIN)
    first = not settings.master_key_file.exists()
    try:
        supervisor = Supervisor(settings)
    except OSError as problem:
        say(f"custody: cannot use the state folder {settings.home}: {problem.strerror} ({problem.filename})")
        return 1
    stop_on_signals(supervisor)
    try:
        await supervisor.up(local_chain=not settings.production and not settings.environment.get(CHAIN_URL))
        say(f"Ready in {time.monotonic() - began:.1f} s.")
        if demo and first:
            await _walk_through(settings, supervisor)
        _tell(settings, supervisor, first=first)
        await supervisor.stopping.wait()
        say("Stopping")
    except (NotReady, PostgresFailed, OSError, asyncpg.PostgresError, PermissionError, ValueError) as problem:
        if not supervisor.stopping.is_set():
            say(f"custody: {problem}")
            return 1
    finally:
        await supervisor.down()
    say("Stopped.")
    return 0


async def _walk_through(settings: Settings, supervisor: Supervisor) -> None:
    from custody.cli import demo  # noqa: PLC0415 - only the first start needs it

    walk = asyncio.get_running_loop().create_task(demo.run(settings), name="demo")
    stopped = asyncio.get_running_loop().create_task(supervisor.stopping.wait(), name="stopped")
    await asyncio.wait({walk, stopped}, return_when=asyncio.FIRST_COMPLETED)
    for task in (walk, stopped):
        task.cancel()
    ended = await asyncio.gather(walk, return_exceptions=True)
    if isinstance(ended[0], Exception):
        # The service is up whatever became of the walk through it.
        say(f"The demo did not finish: {ended[0]!r}. Try `custody demo` again while this runs.")


def _tell(settings: Settings, supervisor: Supervisor, *, first: bool) -> None:
    url, key = settings.api_url, _short(settings.platform_key_file)
    master = f"{_short(settings.master_key_file)}   {'<- made just now; ' if first else ''}"
    say(
        f"""
  API           {url}   (contract: {url}/openapi.json)
  platform key  {key}
  master key    {master}without it every wallet is lost: keep a copy
  logs          {_short(supervisor.home.file("log"))}

Try, in another terminal:
  curl {url}/ready
  curl -H "X-Service-Platform-Key: $(cat {shlex.quote(str(key))})" {url}/platform/stats
  {_command()} doctor

Ctrl-C stops everything."""
    )


def _command() -> str:
    return str(_short(Path(sys.prefix, "bin", "custody")))


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path

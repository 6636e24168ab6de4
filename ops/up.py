"""`custody up`: everything in the foreground, the demo on the first start, and what to try next."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from custody.kit.schema_version import NewerDatabase
from custody.kit.tasks import leave_to_caller, spawn
from ops import first_look, places, production, rate_limit_store, running, variables
from ops.greeting import greeting
from ops.mailbox import FILE, Letter, Mailbox, as_text
from ops.postgres import PostgresFailed
from ops.settings import Settings
from ops.supervisor import CHAIN_URL, LOCAL_CHAIN, GivenUp, NotReady, Supervisor, say, stop_on_signals


async def run(settings: Settings, *, demo: bool) -> int:
    """Bring everything up, stay until asked to stop, take everything down."""
    began = time.monotonic()
    if not _may_start(settings):
        return 2
    first = not settings.master_key_file.exists()
    # Before anything is written: what a full disk cuts short must be found and removed by hand.
    if not settings.home.joinpath("db").is_dir() and (complaint := first_look.fresh_home(settings.home)):
        say(f"custody: {complaint}")
        return 1
    try:
        supervisor = Supervisor(settings)
    except OSError as problem:
        say(f"custody: cannot use the state folder {settings.home}: {problem.strerror} ({problem.filename})")
        return 1
    stop_on_signals(supervisor)
    try:
        local_chain = not settings.production and not settings.environment.get(CHAIN_URL)
        async with mail(settings) as mailbox:
            async with _stage(settings, supervisor, wanted=demo and first and local_chain) as walk_through:
                await supervisor.up(local_chain=local_chain)
                chain_url = settings.environment[CHAIN_URL] if local_chain else None
                here = running.Running(os.getpid(), settings.api_url, settings.proxy_url, chain_url)
                running.note(supervisor.home.path, here)
                if mailbox:
                    places.write_private(supervisor.home.file(FILE), mailbox.page_url + "\n")
                say(f"Ready in {time.monotonic() - began:.1f} s.")
                if walk_through is not None:
                    await _until_stopped(walk_through(), supervisor)
            if not supervisor.stopping.is_set():
                say(greeting(settings, chain_url, mailbox, first=first))
            await supervisor.stopping.wait()
            say("Stopping")
    except GivenUp:
        return 2
    except (NotReady, PostgresFailed, NewerDatabase, OSError, asyncpg.PostgresError, ValueError) as problem:
        if not supervisor.stopping.is_set():
            say(f"custody: {problem}")
            return 1
    finally:
        await supervisor.down()
    say("Stopped.")
    return 0


def _may_start(settings: Settings) -> bool:
    for name in variables.check(settings.environment):
        say(f"Note: {name} has no effect in this version.")
    for sentence in variables.halves(settings.environment):
        say(f"Note: {sentence}.")
    for name in variables.SET_BY_SUPERVISOR:
        if settings.environment.get(name, "").strip():
            say(f"Note: {name} has an effect only when a process is started alone; `custody up` sets it itself.")
    if complaint := rate_limit_store.complaint(settings):
        say(f"Note: {complaint}")
    for process, count in settings.workers.items():
        if count > 1:
            say(f"Note: each {process} worker counts the rate limit on its own.")
    if settings.production:
        missing = production.missing(settings)
        if missing:
            say("custody: SERVICE_ENV=production needs more before it can start:")
            say("\n".join(f"  - {sentence}" for sentence in missing))
        return not missing
    # A laptop has no chain to offer but its own; an operator's choice wins.
    settings.environment.setdefault("SERVICE_DEFAULT_CHAIN_ID", LOCAL_CHAIN)
    return True


@asynccontextmanager
async def mail(settings: Settings) -> AsyncIterator[Mailbox | None]:
    """Choose where mail goes on a first try: into the terminal and onto a page, never into a file. None: it is sent."""
    if settings.production or settings.environment.get("SERVICE_SMTP_URL", "").strip():
        yield None
        return
    mailbox = Mailbox(partial(_show, settings.home / FILE))
    await mailbox.start()
    settings.environment["SERVICE_SMTP_URL"] = mailbox.smtp_url
    try:
        yield mailbox
    finally:
        await mailbox.stop()


def _show(file: Path, letter: Letter) -> None:
    # What is no terminal may be a file, and codes are in none.
    shown = as_text(letter) if sys.stderr.isatty() else f"Mail for somebody; the address to read it at is in {file}"
    say(shown)


@asynccontextmanager
async def _stage(
    settings: Settings, supervisor: Supervisor, *, wanted: bool
) -> AsyncIterator[Callable[[], Coroutine[Any, Any, int]] | None]:
    """The walk-through, ready before the processes start, because the proxy must be told of the API it may call."""
    if not wanted:
        yield None
        return
    # Only the first start needs it.
    from ops import demo  # noqa: PLC0415
    from ops.demo.first_start import upstream_allowed  # noqa: PLC0415

    async with upstream_allowed(settings, supervisor.home) as upstream:
        yield lambda: demo.run(settings, upstream)
    supervisor.settings_changed("proxy")


async def _until_stopped(walking: Coroutine[Any, Any, int], supervisor: Supervisor) -> None:
    walk = spawn(walking, "demo", on_failure=leave_to_caller)
    stopped = spawn(supervisor.stopping.wait(), "stopped")
    await asyncio.wait({walk, stopped}, return_when=asyncio.FIRST_COMPLETED)
    for task in (walk, stopped):
        task.cancel()
    ended = await asyncio.gather(walk, return_exceptions=True)
    if isinstance(ended[0], Exception):
        # The service is up whatever became of the walk through it.
        say(f"The demo did not finish: {ended[0]!r}. Try `custody demo` again while this runs.")

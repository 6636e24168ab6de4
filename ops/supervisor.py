"""One command that brings everything up, keeps it up and takes it down again.

Order up: Postgres, migrations, signer, identity, then api, scheduler and proxy. Order down: the reverse, so that
nothing asks what is no longer there. Dead children are started again; nothing is ever asked of a terminal.
"""

import asyncio
import errno
import os
import signal
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import urlsplit

import asyncpg
import httpx
import msgspec

from custody.kit.tasks import leave_to_caller, spawn
from ops import children, compiled, connections, development_chains, first_look, places, running
from ops.logs import tail
from ops.migrate import migrate
from ops.postgres import EmbeddedPostgres, PostgresFailed
from ops.programs import Programs
from ops.runtime import Python, python_for
from ops.settings import MODULES, Settings
from ops.unlocking import NotOpened, Unlocker

READY_SECONDS = 60.0
# Five deaths in a row while starting take three seconds: more than a port needs to become free again.
_HOPELESS_RESTARTS = 5
# The processes of a supervisor that was killed end by themselves, a moment after it.
_PORT_SECONDS = 2.0
_PORT_LOOKS_EVERY = 0.1
_LOG_SECONDS = 5.0
# What the others ask, and the socket of each: they start first and stop last.
_WORKERS = {"signer": "sign", "identity": "identity"}
LOCAL_CHAIN = "31337"
CHAIN_URL = f"SERVICE_RPC_URL_{LOCAL_CHAIN}"


class NotReady(RuntimeError):
    """Something did not come up in time."""


class GivenUp(NotReady):
    """A process ended over what only the operator can mend, and has said so."""


class PortTaken(NotReady):
    """Another program listens on a port that is to be ours."""


def say(text: str) -> None:
    """Tell the operator, at once even when the output is a pipe."""
    print(text, file=sys.stderr, flush=True)


class Supervisor:
    """The processes of one state folder."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.home = places.open_home(settings.home, settings.uid_base)
        self.owner_url = settings.database_url
        self.programs = Programs(settings, self.home)
        self._unlocker = Unlocker(settings, self.home, say)
        self._lock = places.Lock(self.home.file("lock"))
        self._postgres: EmbeddedPostgres | None = None
        self._children: dict[str, children.Child] = {}
        self._watching: list[asyncio.Task[None]] = []
        self._python: Python | None = None
        self.stopping = asyncio.Event()

    async def up(self, modules: dict[str, str] | None = None, *, local_chain: bool = False) -> None:
        """Bring everything up, with a chain of its own if asked, and return when api and proxy take requests."""
        if not self._lock.take():
            found = running.find(self.home.path)
            pid = f" (pid {found.pid})" if found else ""
            raise NotReady(f"custody already runs in {self.home.path}{pid}; stop it, or choose another SERVICE_HOME")
        try:
            self._unlocker.look()
        except NotOpened as problem:
            raise NotReady(str(problem)) from None
        self._say_how_separate()
        await self._until_ports_are_free()
        await self._database()
        self._python = python = python_for(self.home)
        if local_chain:
            development_chains.ensure(self.settings, self.home.path)
            self._start_chain(python)
        # All of them first: what is wrong with the files of one stops the start before any of them runs.
        each = {name: self.programs.workers(name, module, python) for name, module in (modules or MODULES).items()}
        for process, programs in each.items():
            for program in programs:
                self._start(await self._unlock(program) if process == "signer" else program)
            if process in _WORKERS:
                await self._until(process, partial(self._worker_listens, process))
        self._watching.append(spawn(self._turn_logs(), "logs"))
        await self._until("api", self._api_ready)
        if "proxy" in self._children:
            await self._until("proxy", self._proxy_listens)
        if local_chain:
            await self._until("chain", self._chain_listens)
        self._settle()

    def settings_changed(self, process: str) -> None:
        """Let a process have its present settings when it is started the next time; it goes on running as it is."""
        if self._python is None:
            return
        for program in self.programs.workers(process, MODULES[process], self._python):
            if child := self._children.get(program.name):
                child.program = program

    async def down(self) -> None:
        """Stop everything: api, scheduler and proxy, then the two workers, then Postgres."""
        first = [child for name, child in self._children.items() if name not in _WORKERS]
        await asyncio.gather(*(child.stop() for child in first))
        await asyncio.gather(*(child.stop() for name, child in self._children.items() if name in _WORKERS))
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        if self._postgres is not None:
            await self._postgres.stop()
        self._unlocker.close()
        self._lock.release()

    def _settle(self) -> None:
        """From here on, no process is left ended over its settings or files: they were right once."""
        if any(child.given_up for child in self._children.values()):
            raise GivenUp
        for child in self._children.values():
            child.settled = True

    def _say_how_separate(self) -> None:
        if os.geteuid() == 0 and not self.home.separate:
            say(f"Note: users cannot enter {self.home.path}, so the processes share root's uid (a first try only).")
        if self.home.separate and (given := places.also_given(self.home.uid_base)):
            say(f"Note: {given}.")

    async def _until_ports_are_free(self) -> None:
        deadline = time.monotonic() + _PORT_SECONDS
        while True:
            try:
                return self._ports_are_free()
            except PortTaken:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_PORT_LOOKS_EVERY)

    def _ports_are_free(self) -> None:
        """Another program behind our port could even answer `ready` in our place."""
        settings = self.settings
        public = (
            ("SERVICE_API_PORT", settings.api_host, settings.api_port),
            ("SERVICE_PROXY_PORT", settings.proxy_host, settings.proxy_port),
        )
        if refused := first_look.unusable((*public, *settings.metrics_ports)):
            # What is merely taken may become free; what is wrong stays so.
            merely = {number for _, number in refused} == {errno.EADDRINUSE}
            raise (PortTaken if merely else NotReady)("\n".join(sentence for sentence, _ in refused))

    async def _database(self) -> None:
        if self.settings.database_url is None:
            folder = self.home.file("postgres")
            say("Starting Postgres" if (folder / "data").exists() else "Setting up Postgres (a second or two)")
            room = {"max_connections": str(connections.max_connections(self.settings.environment))}
            self._postgres = EmbeddedPostgres(
                folder, self.programs.log("postgres"), settings=room, uid_base=self.home.uid_base
            )
            self.owner_url = await self._postgres.start()
            owner_file = self.home.file("db", "owner.url")
            places.write_private(owner_file, self.owner_url + "\n")
            watch = self._keep_postgres(self._postgres)
            self._watching.append(spawn(watch, "postgres"))
        assert self.owner_url is not None  # noqa: S101 - one of the two branches set it
        try:
            applied = await migrate(
                self.owner_url,
                self.home,
                given=self.settings.given_database_urls,
                limits=self.settings.connection_limits,
            )
        except OSError as problem:
            if self._postgres is None:
                raise NotReady(f"SERVICE_DATABASE_URL: the database does not respond: {problem}") from problem
            raise
        if applied:
            say(f"Migrated the database ({len(applied)} {'step' if len(applied) == 1 else 'steps'})")

    async def _keep_postgres(self, server: EmbeddedPostgres) -> None:
        delay = 0.0
        while server.process is not None:
            began = time.monotonic()
            code = await children.wait_for_end(server.process)
            delay = 0.0 if time.monotonic() - began > children.WELL_AFTER_SECONDS else delay
            say(
                f"postgres ended ({children.ending(code)}); restarting it, log: {self.home.file('log', 'postgres.log')}"
            )
            while True:
                await asyncio.sleep(delay)
                delay = children.BACKOFF.after(delay)
                try:
                    await server.restart()
                    break
                except (PostgresFailed, OSError, asyncpg.PostgresError) as problem:
                    say(str(problem))

    async def _turn_logs(self) -> None:
        while True:
            try:
                # Some megabytes are copied: not on the loop that starts the dead again.
                await asyncio.to_thread(self.programs.turn_logs)
            except OSError as problem:
                say(f"a log could not be rotated: {problem}")
            await asyncio.sleep(_LOG_SECONDS)

    async def _unlock(self, program: children.Program) -> children.Program:
        """Have the key of a sealed file ready for the signer, however long its holder is away."""
        if not self._unlocker.needed or self._python is None:
            return program
        opening = spawn(self._unlocker.open(program, self._python), "unlock", on_failure=leave_to_caller)
        stopped = spawn(self.stopping.wait(), "stopped", on_failure=leave_to_caller)
        await asyncio.wait({opening, stopped}, return_when=asyncio.FIRST_COMPLETED)
        for task in (opening, stopped):
            task.cancel()
        await asyncio.gather(opening, stopped, return_exceptions=True)
        if opening.cancelled():
            raise NotReady("stopped while starting")
        try:
            return opening.result()
        except NotOpened as problem:
            raise NotReady(str(problem)) from None

    async def _unlock_again(self, program: children.Program) -> children.Program:
        if not self._unlocker.needed or self._python is None:
            return program
        return await self._unlocker.open_until_it_does(program, self._python)

    def _start(self, program: children.Program) -> None:
        prepare = self._unlock_again if program.name == "signer" else None
        child = children.Child(program, say, mend=_mend, prepare=prepare)
        self._children[program.name] = child
        child.start()

    def _start_chain(self, python: Python) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        program = self.programs.program("chain", "ops.local_chain", python)
        self._start(msgspec.structs.replace(program, command=(*program.command, "--port", str(port))))
        self.settings.environment[CHAIN_URL] = f"http://127.0.0.1:{port}"

    async def _until(self, name: str, test: Callable[[], Awaitable[str | None]]) -> None:
        """Wait until `test` has nothing to complain about; give up early when the process keeps dying."""
        child, deadline = self._children.get(name), time.monotonic() + READY_SECONDS
        while complaint := await test():
            if self.stopping.is_set():
                raise NotReady("stopped while starting")
            if any(each.given_up for each in self._children.values()):
                raise GivenUp
            hopeless = child is not None and child.restarts >= _HOPELESS_RESTARTS and not child.alive
            if hopeless or time.monotonic() > deadline:
                log = self.home.file("log", f"{name}.log")
                raise NotReady(f"{name} is not ready: {complaint}\nThe last lines of {log}:\n{tail(log)}")
            await asyncio.sleep(0.03)

    async def _worker_listens(self, process: str) -> str | None:
        path = self.programs.socket(_WORKERS[process])
        try:
            _, writer = await asyncio.open_unix_connection(path)
        except OSError as problem:
            return f"{path}: {problem.strerror}"
        writer.close()
        return None

    async def _chain_listens(self) -> str | None:
        return await _listens(self.settings.environment[CHAIN_URL])

    async def _proxy_listens(self) -> str | None:
        # It opens its port only when it can decide about requests.
        return await _listens(self.settings.proxy_url)

    async def _api_ready(self) -> str | None:
        url = f"{self.settings.api_url}/ready"
        try:
            # Plain HTTP to ourselves: reading the machine's certificates would cost more than the api's whole start.
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            async with httpx.AsyncClient(trust_env=False, timeout=5, verify=tls) as client:
                answer = await client.get(url)
        except httpx.HTTPError as problem:
            return f"{url}: {problem!r}"
        return None if answer.is_success else f"{url} answers {answer.status_code}: {answer.text[:500]}"


def _mend(program: children.Program) -> str | None:
    folder = compiled.clear(program)
    return f"its compiled code was cut short, as a full disk does it; removed {folder}" if folder else None


async def _listens(url: str) -> str | None:
    parts = urlsplit(url)
    try:
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError as problem:
        return f"{url}: {problem.strerror}"
    writer.close()
    return None


def stop_on_signals(supervisor: Supervisor) -> None:
    """Let Ctrl-C, SIGTERM and a closed terminal end the run in order; a second one changes nothing."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # `nohup` asks to outlive the terminal.
        if not (number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN):
            loop.add_signal_handler(number, supervisor.stopping.set)

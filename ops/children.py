"""The processes, what each may know, and how a dead one comes back."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from custody.kit import opener_settings
from custody.kit.tasks import spawn
from ops.launch import Streams, launch, stop
from ops.logs import tail

# A child that lived this long is taken to be well: its next death is a first one again.
WELL_AFTER_SECONDS = 30.0
# The library path is there because some interpreters (tool caches of CI) do not start without it.
COMMON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH")
# Variables that are secret or lead to a secret, with the processes that need them; the owner's address needs nobody.
_RESERVED: dict[str, tuple[str, ...]] = {
    "SERVICE_DATABASE_URL": (),
    "SERVICE_DATABASE_URL_API": ("api",),
    "SERVICE_DATABASE_URL_SIGNER": ("signer",),
    "SERVICE_DATABASE_URL_IDENTITY": ("identity",),
    "SERVICE_DATABASE_URL_SCHEDULER": ("scheduler",),
    "SERVICE_DATABASE_URL_PROXY": ("proxy",),
    "SERVICE_MASTER_KEY_FILE": ("signer",),
    "SERVICE_MASTER_KEY_SOURCE": (),
    "SERVICE_MASTER_KEY_UNLOCK": ("signer",),
    "SERVICE_PLATFORM_KEY_FILE": ("identity",),
    "SERVICE_IDENTITY_KEY_FILE": ("signer", "identity"),
    "SERVICE_CHECKPOINT_FILE": ("signer",),
    "SERVICE_PROXY_CA_KEY_FILE": ("proxy",),
    "SERVICE_SMTP_URL": ("api", "scheduler"),
    "SERVICE_SMS_URL": ("api", "scheduler"),
    "SERVICE_RATE_LIMIT_STORE": ("api", "proxy"),
    # A client's keys, for `custody run` and scripts; never a server's.
    "SERVICE_KEY": (),
    "SERVICE_KEY_FILE": (),
    "SERVICE_AGENT_TOKEN": (),
    "SERVICE_AGENT_TOKEN_FILE": (),
    # Of the programs that open a sealed master key file; each gets its own by its kind.
    **dict.fromkeys(opener_settings.RESERVED, ()),
}
_RESERVED_PREFIXES: dict[str, tuple[str, ...]] = {
    "SERVICE_RPC_URL_": ("api", "scheduler"),
    "SERVICE_TENANT_OIDC_SECRET_": ("api",),
}
# The proxy reads what strangers send: it gets what it needs by name, and nothing because nobody thought of it. Of the
# api's port it makes the address in tokens, where no public URL is set.
_PROXY_MAY_KNOW = frozenset(
    {
        "SERVICE_ENV",
        "SERVICE_HOME",
        "SERVICE_PUBLIC_URL",
        "SERVICE_API_PORT",
        "SERVICE_REVEAL_SOCKET",
        "SERVICE_DATABASE_URL_PROXY",
        "SERVICE_METRICS_HOST",
        "SERVICE_METRICS_PORT_PROXY",
        "SERVICE_RATE_LIMIT_MAX",
        "SERVICE_RATE_LIMIT_WINDOW_SECONDS",
        "SERVICE_RATE_LIMIT_STORE",
    }
)


def environment_for(process: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The part of our environment that one process gets: what all may know, and what is meant for it."""
    return {name: value for name, value in environment.items() if _may_know(process, name)}


def is_reserved(name: str) -> bool:
    """Say whether a SERVICE_ variable is secret or leads to a secret, so that only processes named for it get it."""
    provider = name.startswith("SERVICE_") and name.endswith(("_CLIENT_ID", "_CLIENT_SECRET"))
    return provider or name in _RESERVED or name.startswith(tuple(_RESERVED_PREFIXES))


def _may_know(process: str, name: str) -> bool:
    if opener_settings.is_of_an_opener(name):
        return False
    if process == "proxy" and name.startswith("SERVICE_") and not name.removeprefix("SERVICE_").startswith("PROXY_"):
        return name in _PROXY_MAY_KNOW
    if name in _RESERVED:
        return process in _RESERVED[name]
    for prefix, processes in _RESERVED_PREFIXES.items():
        if name.startswith(prefix):
            return process in processes
    if name.endswith("_CLIENT_ID"):
        # Identity, too: a token that was made for another client proves nothing.
        return process in ("api", "identity")
    if name.endswith("_CLIENT_SECRET"):
        return process == "api"
    return name in COMMON or name.startswith("SERVICE_")


class Program(msgspec.Struct, frozen=True):
    """A process to keep running."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    log: Path
    uid: int | None = None
    stop_seconds: float = 10.0
    # Open ones that it gets, under the same numbers.
    descriptors: tuple[int, ...] = ()


class Backoff(msgspec.Struct, frozen=True):
    """The wait before a program is started again: the first time none, then twice as long each time.

    `mending_seconds`: how long where it ended over a setting or a file, which somebody has to mend first.
    """

    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    mending_seconds: float = 30.0

    def after(self, delay: float) -> float:
        """The next wait in seconds, after one of `delay`."""
        return min(max(self.first_seconds, 2 * delay), self.longest_seconds)


BACKOFF = Backoff()


class Child:
    """Keeps one program running: restarts it when it dies, the first time at once, then slower and slower."""

    def __init__(
        self,
        program: Program,
        say: Callable[[str], None],
        backoff: Backoff = BACKOFF,
        mend: Callable[[Program], str | None] = lambda _program: None,
        prepare: Callable[[Program], Awaitable[Program]] | None = None,
    ) -> None:
        self.program = program
        self.restarts = 0
        # Whether everything was ready once: what was right then may be right again.
        self.settled = False
        # It ended with EX_CONFIG before that, so it is not started again.
        self.given_up = False
        self.process: subprocess.Popen[bytes] | None = None
        self._say = say
        self._backoff = backoff
        # Takes away what a program died of, where that is known, and says so.
        self._mend = mend
        # Gets what it needs each time that it starts again; its first start finds that done.
        self._prepare = prepare
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the program, and keep it running from now on."""
        self._launch()
        self._task = spawn(self._keep(), self.program.name, on_failure=self._report_loss)

    async def stop(self) -> None:
        """Stop for good; a program that does not end in its time is killed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.process is None:
            return
        if not await asyncio.to_thread(stop, self.process, signal.SIGTERM, self.program.stop_seconds):
            self._say(f"{self.program.name} did not stop in {self.program.stop_seconds:.0f} s and was killed")

    @property
    def alive(self) -> bool:
        """True if the program runs right now."""
        return self.process is not None and self.process.poll() is None

    def _launch(self) -> None:
        program = self.program
        with program.log.open("ab") as output:
            self.process = launch(
                program.command,
                environment=program.environment,
                streams=Streams(output, kept=program.descriptors),
                uid=program.uid,
            )

    def _report_loss(self, name: str, problem: BaseException) -> None:
        self._say(f"{name} cannot be restarted: {problem}")

    async def _keep(self) -> None:
        loop, delay, said = asyncio.get_running_loop(), 0.0, ""
        while self.process is not None:
            began = loop.time()
            code = await wait_for_end(self.process)
            delay = 0.0 if loop.time() - began > WELL_AFTER_SECONDS else delay
            if code == os.EX_CONFIG:
                # Its last words say what is wrong with a setting or a file, mostly the same each time.
                words = f"{self.program.name}: {tail(self.program.log, 1).strip()} Mend that"
                if not self.settled:
                    self.given_up = True
                    self._say(f"{words}, then restart Custody.")
                    return
                # The first time at once, or nearly: a file may have been half written.
                seconds = self._backoff.mending_seconds if said else min(1.0, self._backoff.mending_seconds)
                if words != said:
                    again = f"it is tried again every {self._backoff.mending_seconds:.0f} s"
                    self._say(f"{words}: {again}. After changing a setting, restart Custody.")
                said = words
                await asyncio.sleep(seconds)
            else:
                said = ""
                self._say(f"{self.program.name} ended ({ending(code)}); restarting it, log: {self.program.log}")
                if mended := await asyncio.to_thread(self._mend, self.program):
                    self._say(f"{self.program.name}: {mended}")
                await asyncio.sleep(delay)
                delay = self._backoff.after(delay)
            self.restarts += 1
            await self._launch_again()

    async def _launch_again(self) -> None:
        """Try until the program starts: a missing folder, a full disk or a lack of processes may pass."""
        delay, said = 0.0, ""
        while True:
            if self._prepare is not None:
                self.program = await self._prepare(self.program)
            try:
                return self._launch()
            except (OSError, subprocess.SubprocessError) as problem:
                if (complaint := str(problem)) != said:
                    self._say(f"{self.program.name} cannot be started: {complaint}; retrying until it can")
                    said = complaint
            delay = self._backoff.after(delay)
            await asyncio.sleep(delay)


async def wait_for_end(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child to end: the kernel tells us at once, where it can without a thread of its own."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # Not Linux, or no descriptor left.
        return await asyncio.to_thread(process.wait)
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()
    loop.add_reader(handle, lambda: None if gone.done() else gone.set_result(None))
    try:
        await gone
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return process.wait()


def ending(code: int) -> str:
    """Say in words what a child ended with: a signal by its name, or its exit status."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"

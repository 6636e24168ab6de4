"""Which processes there are, what each may know, and how a dead one comes back. Design 2, decisions 2."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from custody.cli.launch import launch, stop

FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0
# A child that lived this long is taken to be well: its next death is a first one again.
WELL_AFTER_SECONDS = 30.0
# The library path is there because some interpreters (tool caches of CI) do not start without it.
_COMMON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH")
# Variables that are secret or lead to a secret, with the processes that need them; the owner's address needs nobody.
_RESERVED: dict[str, tuple[str, ...]] = {
    "SERVICE_DATABASE_URL": (),
    "SERVICE_DATABASE_URL_API": ("api",),
    "SERVICE_DATABASE_URL_SIGNER": ("signer",),
    "SERVICE_DATABASE_URL_SCHEDULER": ("scheduler",),
    "SERVICE_DATABASE_URL_PROXY": ("proxy",),
    "SERVICE_MASTER_KEY_FILE": ("signer",),
    "SERVICE_PLATFORM_KEY_FILE": ("signer",),
    "SERVICE_CHECKPOINT_FILE": ("signer",),
    "SERVICE_PROXY_CA_KEY_FILE": ("proxy",),
    "SERVICE_SMTP_URL": ("api", "scheduler"),
    "SERVICE_SMS_URL": ("api", "scheduler"),
    "SERVICE_RATE_LIMIT_STORE": ("api", "proxy"),
    # A client's keys, for `custody run` and scripts; never a server's.
    "SERVICE_KEY": (),
    "SERVICE_KEY_FILE": (),
    "SERVICE_AGENT_TOKEN": (),
}
_RESERVED_PREFIXES: dict[str, tuple[str, ...]] = {
    "SERVICE_RPC_URL_": ("api", "scheduler"),
    "SERVICE_TENANT_OIDC_SECRET_": ("api",),
}
# The proxy reads what strangers send: it gets what it needs by name, and nothing because nobody thought of it. Of the
# api's port it makes the address in tokens, where no public URL is set.
_PROXY_MAY_KNOW = frozenset({
    "SERVICE_ENV", "SERVICE_HOME", "SERVICE_PUBLIC_URL", "SERVICE_API_PORT", "SERVICE_REVEAL_SOCKET",
    "SERVICE_DATABASE_URL_PROXY", "SERVICE_METRICS_PORT_PROXY", "SERVICE_RATE_LIMIT_MAX",
    "SERVICE_RATE_LIMIT_WINDOW_SECONDS", "SERVICE_RATE_LIMIT_STORE",
})  # fmt: skip


def environment_for(process: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The part of our environment that one process gets: what all may know, and what is meant for it."""
    return {name: value for name, value in environment.items() if _may_know(process, name)}


def is_reserved(name: str) -> bool:
    """Whether a variable of ours is secret or leads to a secret, so that only the processes named for it get it."""
    provider = name.startswith("SERVICE_") and name.endswith(("_CLIENT_ID", "_CLIENT_SECRET"))
    return provider or name in _RESERVED or name.startswith(tuple(_RESERVED_PREFIXES))


def _may_know(process: str, name: str) -> bool:
    if process == "proxy" and name.startswith("SERVICE_") and not name.removeprefix("SERVICE_").startswith("PROXY_"):
        return name in _PROXY_MAY_KNOW
    if name in _RESERVED:
        return process in _RESERVED[name]
    for prefix, processes in _RESERVED_PREFIXES.items():
        if name.startswith(prefix):
            return process in processes
    if name.endswith(("_CLIENT_ID", "_CLIENT_SECRET")):
        return process == "api"
    return name in _COMMON or name.startswith("SERVICE_")


class Program(msgspec.Struct, frozen=True):
    """A process to keep running."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    log: Path
    uid: int | None = None
    stop_seconds: float = 10.0


class Child:
    """Keeps one program running: restarts it when it dies, the first time at once, then slower and slower."""

    def __init__(self, program: Program, say: Callable[[str], None]) -> None:
        self.program = program
        self.restarts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._say = say
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the program, and keep it running from now on."""
        self._launch()
        self._task = asyncio.get_running_loop().create_task(self._keep(), name=self.program.name)
        self._task.add_done_callback(self._kept)

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
        """Whether the program runs right now."""
        return self.process is not None and self.process.poll() is None

    def _launch(self) -> None:
        program = self.program
        with program.log.open("ab") as output:
            self.process = launch(program.command, environment=program.environment, output=output, uid=program.uid)

    def _kept(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (problem := task.exception()):
            self._say(f"{self.program.name} cannot be started again: {problem}")

    async def _keep(self) -> None:
        loop, delay = asyncio.get_running_loop(), 0.0
        while self.process is not None:
            began = loop.time()
            code = await ended(self.process)
            delay = 0.0 if loop.time() - began > WELL_AFTER_SECONDS else delay
            self._say(f"{self.program.name} ended ({_reason(code)}); starting it again, log: {self.program.log}")
            await asyncio.sleep(delay)
            delay = min(max(FIRST_DELAY, 2 * delay), LONGEST_DELAY)
            self.restarts += 1
            self._launch()


async def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child to end: the kernel tells us at once, where it can without a thread of its own."""
    if sys.platform != "linux":
        return await asyncio.to_thread(process.wait)
    loop, handle = asyncio.get_running_loop(), os.pidfd_open(process.pid)
    gone: asyncio.Future[None] = loop.create_future()
    loop.add_reader(handle, lambda: None if gone.done() else gone.set_result(None))
    try:
        await gone
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return process.wait()


def _reason(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"

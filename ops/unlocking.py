"""The key of the sealed master key file: asked of a holder by an opener, and kept in memory for each new signer.

A signer that was killed comes back without its holder. It is asked again only where the file has another id.
"""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

from custody.kit.key_head import Head, MalformedHead
from custody.kit.opener_settings import UNLOCK_SOCKET
from custody.kit.tasks import leave_to_caller, spawn
from ops import checkout, children, places
from ops.holders import SOURCE, UNLOCK, kinds_of, read_head
from ops.opener_process import Answer, environment_for, kill, listen, start
from ops.runtime import Python
from ops.settings import Settings

# One opener, but for people: they come when they come.
OPENER_SECONDS = 20.0
# systemd lets root alone read the key of a host, so its program cannot be another user's.
AS_WE_ARE = frozenset({"systemd"})
# A descriptor of memory with a key, and the id of the file that it opens.
type Opened = tuple[int, str]
BACKOFF = children.Backoff(first_seconds=0.2, longest_seconds=30.0)


class NotOpened(RuntimeError):
    """No holder gives the key; the sentences say why, and what to do."""


class Unlocker:
    """Keeps the key of the file for the signer that runs next."""

    def __init__(self, settings: Settings, home: places.Home, say: Callable[[str], None]) -> None:
        self._kinds = kinds_of(settings.environment)
        self._settings, self._home, self._say = settings, home, say
        self._file: str | None = None
        self._memory: int | None = None
        self._asked: set[subprocess.Popen[bytes]] = set()

    @property
    def needed(self) -> bool:
        """Say whether the settings name holders at all."""
        return bool(self._kinds)

    def look(self) -> None:
        """Raise NotOpened where the file does not fit the settings, before anything is started."""
        if self._kinds:
            self._head()

    async def key(self, python: Python) -> int:
        """A descriptor with the key of the file as it is now; waits for a holder that is away, without end."""
        head = self._head()
        if self._memory is None or self._file != head.file:
            opened = await self._ask_all(head, python)
            self.close()
            self._memory, self._file = opened
        return self._memory

    async def open(self, program: children.Program, python: Python) -> children.Program:
        """The program with that descriptor, and its number in the environment."""
        memory = await self.key(python)
        environment = {**program.environment, UNLOCK: f"fd:{memory}"}
        return msgspec.structs.replace(program, environment=environment, descriptors=(memory,))

    async def open_until_it_does(self, program: children.Program, python: Python) -> children.Program:
        """The same for a signer that ran before: what was right once may be again, so it is tried until it opens."""
        said = ""
        while True:
            try:
                return await self.open(program, python)
            except NotOpened as problem:
                if str(problem) != said:
                    self._say(f"{problem} It is tried again every {children.BACKOFF.mending_seconds:.0f} s.")
                said = str(problem)
                await asyncio.sleep(children.BACKOFF.mending_seconds)

    def close(self) -> None:
        """Forget the key."""
        if self._memory is not None:
            os.close(self._memory)
        self._memory = self._file = None

    def _head(self) -> Head:
        file = self._settings.master_key_file
        try:
            head = read_head(file)
        except MalformedHead as problem:
            raise NotOpened(f"{file}: {problem.message}") from None
        except OSError as problem:
            raise NotOpened(f"The master key {file} cannot be read: {problem.strerror}.") from None
        if head is None:
            kinds = ",".join(self._kinds)
            found = "is not sealed" if file.exists() else "is not there"
            raise NotOpened(
                f"The master key {file} {found}, though {SOURCE} is {kinds}. Seal it with `custody keys lock`, or "
                f"unset {SOURCE}."
            )
        return head

    async def _ask_all(self, head: Head, python: Python) -> Opened:
        """Ask the kinds in order: the next one as soon as one did not open, while those that are away are asked on."""
        refusals: list[str] = []
        asking: set[asyncio.Task[Opened]] = set()
        try:
            for kind in self._kinds:
                missed = asyncio.Event()
                asking.add(spawn(self._ask_on(kind, head, python, missed), kind, on_failure=leave_to_caller))
                waiting = spawn(missed.wait(), "missed", on_failure=leave_to_caller)
                await asyncio.wait({*asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if (opened := _take(asking, refusals)) is not None:
                    return opened
            while asking:
                await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                if (opened := _take(asking, refusals)) is not None:
                    return opened
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            self._kill_all()
        raise NotOpened(" ".join(refusals))

    async def _ask_on(self, kind: str, head: Head, python: Python, missed: asyncio.Event) -> Opened:
        """Ask one kind until it opens or says that it will not."""
        delay, said = 0.0, ""
        while True:
            answer = await self._ask(kind, head, python)
            if answer.memory is not None:
                return answer.memory, head.file
            missed.set()
            # One that was killed, over its time or by somebody, has said nothing of its holder.
            if answer.status is not None and answer.status > 0 and answer.status != os.EX_TEMPFAIL:
                raise NotOpened(f"The master key was not opened by {kind}: {answer.said}")
            if answer.said != said:
                self._say(f"The master key waits for {kind}: {answer.said} It is asked again until it answers.")
                said = answer.said
            delay = BACKOFF.after(delay)
            await asyncio.sleep(delay)
            # The cure of one that stays away is another holder, or another key of the file.
            head = self._head()

    async def _ask(self, kind: str, head: Head, python: Python) -> Answer:
        environment = environment_for(kind, self._settings.environment) | python.environment
        if kind == "people":
            environment[UNLOCK_SOCKET] = str(self.socket())
            self._say("The master key waits for people: each brings a share with `custody unlock`.")
        command = (str(self._program(python)), "-m", "openers", kind, "open")
        uid = None if kind in AS_WE_ARE else self._home.uid_of("opener")
        process = start(command, environment, head, uid)
        self._asked.add(process)
        try:
            return await asyncio.to_thread(listen, process, None if kind == "people" else OPENER_SECONDS)
        finally:
            kill(process)
            self._asked.discard(process)

    def socket(self) -> Path:
        """Name where the opener of people listens, in a folder of its own."""
        uid = self._home.uid_of("opener")
        run = places.socket_folder(self._home.file("run-opener"), owner=uid, mode=0o700)
        return run / "unlock.sock"

    def _program(self, python: Python) -> Path:
        """The interpreter that has the libraries of holders; in a checkout they are apart from the service's own."""
        apart = checkout.OPENERS_PYTHON
        return apart if apart.exists() and (not self._home.separate or places.readable(apart)) else python.program

    def _kill_all(self) -> None:
        for process in list(self._asked):
            kill(process)


def _take(asking: set[asyncio.Task[Opened]], refusals: list[str]) -> Opened | None:
    """The key of the first that opened; those that never will are taken out, and their sentences kept."""
    found = None
    for task in [task for task in asking if task.done()]:
        asking.discard(task)
        problem = task.exception()
        if isinstance(problem, NotOpened):
            refusals.append(str(problem))
        elif problem is not None:
            raise problem
        elif found is None:
            found = task.result()
        else:
            os.close(task.result()[0])
    return found

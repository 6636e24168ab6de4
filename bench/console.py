"""The console with ten thousand approvals that wait: how soon one sees them, and whether it ever stands still.

`python -m bench.console`. The items are what agents asked for through the API; the console draws to a terminal that is
not there, in this process, beside the service on the same machine.
"""

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from textual import events

import console.app
from bench import load
from bench.deployment import Deployment
from console.app import Console
from console.entry.settings import Settings
from console.widgets.listing import Listing

ITEMS = 10_000
AGENTS = 20
PAGES = 200
ARRIVALS = 100
SIZE = (140, 44)
PULSE_SECONDS = 0.002
PATIENCE_SECONDS = 120
ORDER = msgspec.json.encode({"to": f"0x{1:040x}", "value": "5", "broadcast": False})
ACTS = {
    f"page down, {PAGES} times": ["pagedown"] * PAGES,
    "end and home": ["end", "home"] * 5,
    "a search typed": ["slash", *"payer-7", "enter"],
    "and taken back": ["slash", *["backspace"] * 7, "enter"],
    "sorted in each order": ["s"] * 5,
}
ASKS = [{"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": "0"}}]


def measure() -> None:
    """Everything, one line each."""
    with Deployment() as deployment:
        began = time.perf_counter()
        tokens = waiting(deployment, ITEMS)
        say(f"console: {ITEMS:,} orders of {AGENTS} agents asked for and queued in {time.perf_counter() - began:.0f} s")
        # It is what tells the stream of events.
        deployment.start("scheduler")
        # As `console/__main__.py` does.
        gc.freeze()
        asyncio.run(_drive(deployment, *next(iter(tokens.items()))))


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


def waiting(deployment: Deployment, items: int) -> dict[str, str]:
    """Agents of whom every order waits for a person, and so many orders of theirs."""
    tokens = deployment.agents(AGENTS, prefix="payer")
    for agent, token in tokens.items():
        deployment.call("PUT", f"/agents/{agent}/policies", ASKS, **{"X-Service-Key": deployment.tenant_key})
        order = load.request("POST", f"/vault/{agent}/sign", ORDER, Authorization=f"Bearer {token}")
        statuses = load.run_all(deployment.port, order, items // AGENTS, clients=8).statuses
        if statuses != {202: items // AGENTS}:
            raise RuntimeError(f"not all were queued: {statuses}")
    return tokens


class Drawn(Console):
    """The console, and how often it drew."""

    CSS_PATH = Path(console.app.__file__).parent / "console.tcss"
    frames = 0

    def _display(self, screen: Any, renderable: Any) -> None:
        self.frames += 1
        super()._display(screen, renderable)

    @property
    def listing(self) -> Listing[Any] | None:
        """The queue's list, once it is there."""
        return next(iter(self.screen.query(Listing)), None) if self.screen_stack else None

    @property
    def rows(self) -> int:
        """Number of items in the list."""
        return len(self.listing.rows) if self.listing else 0


@dataclass
class Still:
    """The longest time in which the console could do nothing else, in milliseconds."""

    longest: float = 0.0


@asynccontextmanager
async def still() -> AsyncIterator[Still]:
    """Watch the event loop's pulse."""
    found = Still()

    async def pulse() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(PULSE_SECONDS)
            found.longest = max(found.longest, (time.perf_counter() - began - PULSE_SECONDS) * 1000)

    beating = asyncio.ensure_future(pulse())
    try:
        yield found
    finally:
        beating.cancel()


async def _drive(deployment: Deployment, agent: str, token: str) -> None:
    before = _memory()
    with tempfile.TemporaryDirectory(prefix="bc-") as folder:
        url = f"http://127.0.0.1:{deployment.port}"
        began = time.perf_counter()
        app = Drawn(Settings("default", url, Path(folder), key=deployment.tenant_key))
        async with app.run_test(size=SIZE):
            frames = await _until(lambda: app.rows > 0 and app.frames)
            frames = await _until(lambda: app.frames > frames and app.frames)
            first = time.perf_counter() - began
            # Until here there is nothing that one could have pressed a key for.
            async with still() as loading:
                await _until(lambda: app.rows >= ITEMS)
            say(
                f"  from start to the first items seen {first:5.2f} s, to all of them {time.perf_counter() - began:5.2f} s"
            )
            say(
                f"  while the others came in: stood still for at most {loading.longest:4.0f} ms, "
                f"{app.frames - frames} frames drawn"
            )
            for name, keys in ACTS.items():
                async with still() as found:
                    times = [await _press(app, key) for key in keys]
                say(
                    f"  {name:24} from key to frame p50 {statistics.median(times):4.0f} ms, longest {max(times):4.0f} ms; "
                    f"stood still for at most {found.longest:4.0f} ms"
                )
            say(f"  memory of the console with all of them {_memory() - before} MiB")
            await _arrivals(deployment, app, agent, token)


async def _press(app: Drawn, key: str) -> float:
    """Milliseconds from a key, as a terminal sends it, to the next frame."""
    frames, began = app.frames, time.perf_counter()
    app.post_message(events.Key(key, key if len(key) == 1 else None))
    await _until(lambda: app.frames > frames)
    return (time.perf_counter() - began) * 1000


async def _arrivals(deployment: Deployment, app: Drawn, agent: str, token: str) -> None:
    """From the agent's request to the item in the list of somebody who looks at it."""
    times = []
    for number in range(ARRIVALS):
        began = time.perf_counter()
        answer = await asyncio.to_thread(_sign, deployment, agent, token, number)
        key = answer["data"]["approvalId"]
        await _until(lambda key=key: app.listing is not None and app.listing.holds(key))  # type: ignore[misc]
        times.append(time.perf_counter() - began)
    say(
        f"  from an agent's request to the item in the list, {ARRIVALS} times: "
        f"p50 {statistics.median(times) * 1000:.0f} ms, longest {max(times) * 1000:.0f} ms"
    )


def _sign(deployment: Deployment, agent: str, token: str, number: int) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    order = {"to": f"0x{2:040x}", "value": str(number + 1), "broadcast": False}
    return deployment.http.post(f"/vault/{agent}/sign", json=order, headers=headers).json()


async def _until(true: Callable[[], int]) -> int:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := true()):
        if time.monotonic() > deadline:
            raise RuntimeError("the console never came so far")
        await asyncio.sleep(PULSE_SECONDS)
    return found


def _memory() -> int:
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) // 1024


if __name__ == "__main__":
    measure()

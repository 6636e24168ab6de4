"""The innocent tenant's measurements: a read, a signature and a proxied call, again and again, each with its time."""

import asyncio
import time

import httpx
import msgspec

# Each kind of call is begun so often a second, whatever became of the one before.
RATE = 20
PATIENCE = 15.0
KINDS = ("read", "sign", "proxied")


class Noticed(msgspec.Struct):
    """Seconds of each call that was answered well, and what became of the others, by kind."""

    seconds: dict[str, list[float]] = msgspec.field(default_factory=lambda: {kind: [] for kind in KINDS})
    failures: list[str] = []

    def p99(self, kind: str) -> float:
        """The time in milliseconds that one call of a hundred takes longer than."""
        ordered = sorted(self.seconds[kind])
        return ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)] * 1000 if ordered else float("inf")


class Innocent(msgspec.Struct, frozen=True):
    """A tenant's reader, its agent, and the agent's call through the proxy."""

    api: str
    proxied: str
    key: str
    agent: str
    token: str

    async def lives(self, seconds: float) -> Noticed:
        """Do all three for some seconds."""
        noticed = Noticed()
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=20)
        async with httpx.AsyncClient(timeout=PATIENCE, limits=limits, trust_env=False) as client:
            await asyncio.gather(*(self._again(kind, client, noticed, seconds) for kind in KINDS))
        return noticed

    async def _again(self, kind: str, client: httpx.AsyncClient, noticed: Noticed, seconds: float) -> None:
        began, calls = time.monotonic(), []
        for number in range(int(seconds * RATE)):
            await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))
            calls.append(asyncio.ensure_future(self._once(kind, client, noticed)))
        await asyncio.gather(*calls)

    async def _once(self, kind: str, client: httpx.AsyncClient, noticed: Noticed) -> None:
        began = time.monotonic()
        bearer = {"Authorization": f"Bearer {self.token}"}
        try:
            if kind == "read":
                answer = await client.get(f"{self.api}/agents/{self.agent}", headers={"X-Service-Key": self.key})
            elif kind == "sign":
                order = {"to": "0x" + "11" * 20, "value": "1", "broadcast": False}
                answer = await client.post(f"{self.api}/vault/{self.agent}/sign", json=order, headers=bearer)
            else:
                answer = await client.get(self.proxied, headers=bearer)
        except httpx.HTTPError as problem:
            noticed.failures.append(f"{kind}: {type(problem).__name__}")
            return
        if answer.is_success:
            noticed.seconds[kind].append(time.monotonic() - began)
        else:
            noticed.failures.append(f"{kind}: {answer.status_code}")

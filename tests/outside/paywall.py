"""A server that demands payment by x402 for every path, well or badly; it takes each payment once, and settles none."""

import asyncio
import base64
import gzip
from collections.abc import Awaitable, Callable, Iterator, Mapping
from hashlib import sha256

import msgspec

from tests.outside.upstream_server import Goodbye, Visit


class Paywall(Mapping[str, Callable[[Visit], Awaitable[None]]]):
    """The query of each request says what it demands and how: `accepts` in JSON, `how` in a word."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __getitem__(self, _path: str) -> Callable[[Visit], Awaitable[None]]:
        return self.serve

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1

    def get(self, path: str, _default: object = None) -> Callable[[Visit], Awaitable[None]]:
        """Every path is served."""
        return self[path]

    async def serve(self, visit: Visit) -> None:
        """Sell one answer for each payment that was not taken before."""
        body = await visit.body()
        payment = visit.header("payment-signature") or visit.header("x-payment")
        how = visit.query.get("how", "")
        if how == "dying" and visit.turn > 1:
            visit.note("died")
            visit.reset()
        if how == "elsewhere":
            await visit.answer(b"", 302, location=visit.query["to"])
            return
        if how in ("free", "dying"):
            await visit.answer(b"free", payment_required=_demand(visit))
            return
        if how == "slow-demand" and payment is None:
            await visit.desk.gates[how].acquire()
        if payment is None or how == "never":
            await self._ask(visit, how)
            return
        if how == "never by v1":
            # Once more, and now as clients of version 1 understand it.
            visit.query |= {"how": "v1", "accepts": visit.query["then"]}
            await self._ask(visit, "v1")
            return
        mark = sha256(payment.encode()).hexdigest()
        visit.note("paid", mark=mark, payment=msgspec.json.decode(base64.b64decode(payment)))
        fresh = mark not in self._taken
        self._taken.add(mark)
        if how == "reset" and fresh:
            visit.reset()
        if how == "hold":
            await visit.desk.gates["paywall"].acquire()
        if how in ("stream", "halt"):
            await visit.head(content_type="text/event-stream", transfer_encoding="chunked")
            for number in range(3):
                await visit.chunk(b"data: %d\n\n" % number)
                if (how, fresh, number) == ("halt", True, 0):
                    await visit.desk.gates[how].acquire()
            await visit.chunk(b"")
            return
        if not fresh and how != "reset":
            await self._ask(visit, "")
            return
        told = base64.b64encode(b'{"success":true}').decode()
        await visit.answer(b"sold " + sha256(body).hexdigest().encode(), payment_response=told)

    @staticmethod
    async def _ask(visit: Visit, how: str) -> None:
        """Demand it: by version 2 in the header, unless `how` says otherwise."""
        text = _demand(visit)
        body = base64.b64decode(text) if how == "v1" else b'{"error":"pay"}'
        headers = {} if how == "v1" else {"payment_required": text}
        if how == "raw":
            headers = {"payment_required": visit.query["raw"]}
        if how == "closing":
            headers["connection"] = "close"
        if how == "cookie":
            headers["set_cookie"] = "tracked=1"
        if how == "large":
            body = b"x" * (65 * 1024)
        if how == "gzip":
            body, headers = gzip.compress(base64.b64decode(text)), {"content_encoding": "gzip"}
        if how == "bomb":
            body, headers = gzip.compress(b"[" * 2**24), {"content_encoding": "gzip"}
        if how == "twice":
            await visit.send(b"HTTP/1.1 402 Payment Required\r\nContent-Length: 0\r\n")
            await visit.send(f"PAYMENT-REQUIRED: {text}\r\n".encode() * 2 + b"\r\n")
            return
        if how == "break":
            await visit.head(402, payment_required=text, content_length="100")
            await visit.send(b"only a part")
            raise Goodbye
        status = 401 if how == "unauthorized" else 402
        if visit.method == "HEAD":
            await visit.head(status, **headers, content_length=str(len(body)))
            return
        await visit.answer(body, status, **headers)
        await asyncio.sleep(0)


def _demand(visit: Visit) -> str:
    version = 1 if visit.query.get("how") in ("v1", "gzip") else 2
    accepts = msgspec.json.decode(visit.query.get("accepts", "[]"))
    demand = {"x402Version": version, "accepts": accepts, "error": "pay first"}
    if version == 2:
        demand["resource"] = {"url": f"https://localhost{visit.path}", "description": "weather"}
    return base64.b64encode(msgspec.json.encode(demand)).decode()

"""An API: it knows its credential, its paths byte for byte, and nothing else."""

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tests.outside.upstream_server import Visit

MIB = 2**20
SIZE = 20 * MIB
Answer = Callable[..., Awaitable[None]]


def content(size: int = SIZE) -> bytes:
    """Bytes of a file, the same at each call, of which no two parts of 32 bytes are alike."""
    return b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(size // 32))


FILE = content()


def secret_of(api: str) -> str:
    """The credential that an API takes."""
    return f"secret-of-{api}-0123456789abcdef"


class Api:
    """Answers for one API; a request that it does not know, or without the credential, is logged as a stray."""

    def __init__(self, name: str, credential: Callable[[Visit], str | None] | None = None) -> None:
        self.name = name
        self._credential = credential
        self._answers: list[tuple[str, re.Pattern[str], Answer]] = []

    def on(self, method: str, target: str) -> Callable[[Answer], Answer]:
        """Answer requests whose target, as it was sent, is this expression; its groups are the answer's arguments."""

        def keep(answer: Answer) -> Answer:
            self._answers.append((method, re.compile(target), answer))
            return answer

        return keep

    # As `Server` asks for answers by path.
    def get(self, _path: str, _default: Answer) -> Answer:
        """Return the answer to any request."""
        return self._answer

    def __getitem__(self, _path: str) -> Answer:
        return self._answer

    async def _answer(self, visit: Visit) -> None:
        if self._credential is not None and self._credential(visit) != secret_of(self.name):
            visit.note("stray", api=self.name, why="credential", target=visit.target)
            await visit.body()
            await refuse(visit, 401, "The credential is wrong.")
            return
        for method, target, answer in self._answers:
            if method == visit.method and (found := target.fullmatch(visit.target)):
                await answer(visit, *found.groups())
                return
        visit.note("stray", api=self.name, why="path", target=visit.target)
        await visit.body()
        await refuse(visit, 404, "There is no such path.")


async def refuse(visit: Visit, status: int, sentence: str, **headers: str) -> None:
    """An error of the API, as most write it."""
    body = msgspec.json.encode({"error": {"message": sentence, "code": status, "type": "error"}, "message": sentence})
    await visit.answer(b"" if visit.method == "HEAD" else body, status, content_type="application/json", **headers)


async def be_busy(visit: Visit) -> None:
    """429, and when to come again."""
    await visit.body()
    await refuse(visit, 429, "Slow down.", retry_after="7")


async def send_file(visit: Visit, **headers: str) -> None:
    """The file of 20 MiB, or the part of it that is asked for."""
    asked = visit.header("x-ms-range") or visit.header("range")
    first, last, status = 0, SIZE - 1, 200
    if asked and (found := re.fullmatch(r"bytes=(\d+)-(\d*)", asked)):
        first, last, status = int(found[1]), min(int(found[2] or last), last), 206
        headers["content_range"] = f"bytes {first}-{last}/{SIZE}"
    headers = {"content_type": "application/octet-stream", "accept_ranges": "bytes", "etag": '"file-1"', **headers}
    length = last + 1 - first
    await visit.head(status, **headers, content_length=str(length))
    if visit.method != "HEAD":
        for at in range(first, last + 1, MIB):
            await visit.send(FILE[at : min(at + MIB, last + 1)])


def digest_of(content: bytes) -> list[Any]:
    """Size and SHA-256 of what came whole."""
    return [len(content), hashlib.sha256(content).hexdigest()]


async def receive(visit: Visit) -> list[Any]:
    """Size and SHA-256 of what is uploaded."""
    size, digest = 0, hashlib.sha256()
    async for piece in visit.pieces():
        size += len(piece)
        digest.update(piece)
    return [size, digest.hexdigest()]


def in_header(name: str, form: str = "{}") -> Callable[[Visit], str | None]:
    """The credential out of a header, of which there must be one."""
    before, _, after = form.partition("{}")

    def read(visit: Visit) -> str | None:
        values = [value for known, value in visit.headers if known.lower() == name]
        if len(values) != 1 or not (values[0].startswith(before) and values[0].endswith(after)):
            return None
        return values[0].removeprefix(before).removesuffix(after)

    return read

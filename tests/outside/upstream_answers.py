"""Answers of the upstream, by path: those of an honest API, and those of a broken or hostile one."""

import asyncio
import base64
import gzip
import hashlib
import itertools
import zlib
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, quote

import brotli
import msgspec
import zstandard

from tests.outside.upstream_server import Goodbye, Visit

Answer = Callable[[Visit], Awaitable[None]]
ANSWERS: dict[str, Answer] = {}
_ZEROS = bytes(65536)
_WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def at(*paths: str) -> Callable[[Answer], Answer]:
    """Answer these paths; whatever has no answer of its own is echoed."""

    def keep(answer: Answer) -> Answer:
        ANSWERS.update(dict.fromkeys(paths, answer))
        return answer

    return keep


# ---------------------------------------------------------------- honest


@at("/echo")
async def echo(visit: Visit) -> None:
    """The request without its credential; `/reflect` shows that."""
    body = await visit.body()
    shown = [[name, value] for name, value in visit.headers if name.lower() != "authorization"]
    await visit.answer_json(
        {"method": visit.method, "target": visit.target, "headers": shown, "body": body.decode("latin-1")}
    )


@at("/count")
async def count(visit: Visit) -> None:
    """The size of the body and its SHA-256."""
    size, digest = 0, hashlib.sha256()
    async for piece in visit.pieces():
        size += len(piece)
        digest.update(piece)
    await visit.answer_json({"size": size, "sha256": digest.hexdigest()})


@at("/pieces")
async def in_pieces(visit: Visit) -> None:
    """The size of the body, and in how many chunks it came."""
    sizes = [len(piece) async for piece in visit.pieces()]
    await visit.answer_json({"size": sum(sizes), "pieces": len(sizes)})


@at("/crumbs")
async def crumbs(visit: Visit) -> None:
    """`n` chunks of one byte."""
    await visit.head(content_type="text/plain", transfer_encoding="chunked")
    await visit.send(b"1\r\na\r\n" * visit.number("n", 1) + b"0\r\n\r\n")


@at("/sse")
async def events(visit: Visit) -> None:
    """`n` events; each after the first only when the test has opened the gate once more."""
    await visit.head(content_type="text/event-stream", transfer_encoding="chunked")
    for number in range(visit.number("n", 3)):
        if number:
            await visit.desk.gates[visit.query["gate"]].acquire()
        await visit.chunk(b"data: %d\n\n" % number)
    await visit.chunk(b"")


@at("/zeros")
async def zeros(visit: Visit) -> None:
    """`size` bytes, as fast as they are taken."""
    left = visit.number("size", 0)
    await visit.head(content_type="application/octet-stream", content_length=str(left))
    while left:
        piece = _ZEROS[: min(left, len(_ZEROS))]
        await visit.send(piece)
        left -= len(piece)
        visit.desk.sent[visit.query.get("name", "")] += len(piece)


@at("/until-close")
async def until_close(visit: Visit) -> None:
    """A body whose end is that of its connection."""
    await visit.head(content_type="text/plain")
    await visit.send(b"all there is")
    raise Goodbye


@at("/trailers")
async def trailers(visit: Visit) -> None:
    """A chunked body with fields behind it."""
    await visit.head(content_type="text/plain", transfer_encoding="chunked", trailer="X-After")
    await visit.chunk(b"body")
    await visit.send(b"0\r\nX-After: " + visit.credential.encode("latin-1") + b"\r\n\r\n")


@at("/interim")
async def interim(visit: Visit) -> None:
    """Interim answers before the real one."""
    await visit.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    await visit.head(103, link="</style.css>; rel=preload")
    await visit.answer(b"final", content_type="text/plain")


@at("/redirect")
async def redirect(visit: Visit) -> None:
    """Sends the client elsewhere, in a header of the test's choice."""
    await visit.body()
    await visit.answer(b"", visit.number("code", 302), **{visit.query.get("in", "location"): visit.query["to"]})


@at("/repos/o/r/issues")
async def pages(visit: Visit) -> None:
    """One of three pages, with a link to the next one as GitHub writes it."""
    page = visit.number("page", 1)
    link = f'<https://{visit.header("host")}{visit.path}?page={page + 1}>; rel="next"'
    await visit.answer_json([{"id": page}], **({"link": link} if page < 3 else {}))


@at("/cookie")
async def cookie(visit: Visit) -> None:
    """Sets a cookie as it was asked for."""
    await visit.answer(b"", set_cookie=visit.query["is"])


@at("/status")
async def status(visit: Visit) -> None:
    """Any status."""
    await visit.body()
    await visit.answer(b"", visit.number("code", 200))


@at("/no-content")
async def no_content(visit: Visit) -> None:
    """An answer without a body, and without a word about its length."""
    await visit.head(204)


@at("/cookies")
async def cookies(visit: Visit) -> None:
    """Two headers of one name, and one that would lead around the proxy."""
    await visit.send(
        b'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nAlt-Svc: h3=":443"\r\nKeep-Alive: timeout=5\r\n'
        b"X-Service-Request-Id: forged\r\nX-Service-Error: no_route\r\nX-Request-Id: theirs\r\n"
        b"Connection: X-Private\r\nX-Private: 1\r\nContent-Length: 0\r\n\r\n"
    )


@at("/v1/chat/completions")
async def chat(visit: Visit) -> None:
    """As much of OpenAI's protocol as its client asks for."""
    asked = msgspec.json.decode(await visit.body())
    said = asked["messages"][-1]["content"].split()
    common = {"id": "chatcmpl-1", "created": 1, "model": asked["model"]}
    if not asked.get("stream"):
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": " ".join(said)}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        await visit.answer_json({**common, "object": "chat.completion", "choices": [choice], "usage": usage})
        return
    await visit.head(content_type="text/event-stream", transfer_encoding="chunked")
    for word in said:
        choices = [{"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}]
        await _event(visit, {**common, "object": "chat.completion.chunk", "choices": choices})
    await visit.chunk(b"data: [DONE]\n\n")
    await visit.chunk(b"")


@at("/v1/messages")
async def messages(visit: Visit) -> None:
    """As much of Anthropic's protocol as its client asks for."""
    asked = msgspec.json.decode(await visit.body())
    said = asked["messages"][-1]["content"].split()
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if not asked.get("stream"):
        content = [{"type": "text", "text": " ".join(said)}]
        await visit.answer_json({**message, "content": content, "stop_reason": "end_turn"})
        return
    await visit.head(content_type="text/event-stream", transfer_encoding="chunked")
    await _event(visit, {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}})
    await _event(visit, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for word in said:
        delta = {"type": "text_delta", "text": f"{word} "}
        await _event(visit, {"type": "content_block_delta", "index": 0, "delta": delta})
    await _event(visit, {"type": "content_block_stop", "index": 0})
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    await _event(visit, {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 2}})
    await _event(visit, {"type": "message_stop"})
    await visit.chunk(b"")


async def _event(visit: Visit, data: dict[str, Any]) -> None:
    name = b"event: %s\n" % data["type"].encode() if "type" in data else b""
    await visit.chunk(name + b"data: " + msgspec.json.encode(data) + b"\n\n")


@at("/unauthorized")
async def refuse_as_proxy(visit: Visit) -> None:
    """Its own 401, in every word like one of the proxy's."""
    forged = {"X-Request-Id": "x", "X-Service-Error": "bad_token", "X_Service_Error": "bad_token"}
    body = visit.query["body"].encode()
    await visit.answer(
        body,
        401,
        content_type="application/json",
        www_authenticate='Bearer realm="custody"',
        x_service_request_id="x",
        **forged,
    )


_minted = itertools.count(1)


@at("/token", "/app/installations/77/access_tokens")
async def token(visit: Visit) -> None:
    """Another access token for each request, or what the query says instead."""
    await visit.body()
    if "gate" in visit.query:
        await visit.desk.gates[visit.query["gate"]].acquire()
    if "body" in visit.query:
        body = visit.query["body"].replace("%s", "x" * visit.number("long", 0))
        await visit.answer(body.encode(), visit.number("status", 200), content_type="application/json")
        return
    name = "access_token" if visit.path == "/token" else "token"
    said = {name: f"minted-{next(_minted)}-{'x' * 30}", "expires_in": visit.number("seconds", 3_600)}
    await visit.answer_json(said)


# Of each family the refresh token that counts; none once an old one was shown.
_families: dict[str, str] = {}


@at("/rotating")
async def rotating(visit: Visit) -> None:
    """A token endpoint with another refresh token for each use; an old one ends the family, as Auth0 and Okta do.

    `gate` holds the answer back when the next one counts already; `lose` is the use whose answer never comes, `garble`
    the one whose access token is none.
    """
    (given,) = parse_qs((await visit.body()).decode())["refresh_token"]
    family, _, number = given.rpartition("-")
    if given != _families.setdefault(family, f"{family}-0"):
        _families[family] = ""
        await visit.answer(b'{"error": "invalid_grant"}', 400, content_type="application/json")
        return
    _families[family] = following = f"{family}-{int(number) + 1}"
    if "gate" in visit.query:
        await visit.desk.gates[visit.query["gate"]].acquire()
    if visit.query.get("lose") == number:
        raise Goodbye
    said = {"access_token": f"minted-{next(_minted)}-{'x' * 30}", "expires_in": visit.number("seconds", 3_600)}
    if visit.query.get("garble") == number:
        said["access_token"] = "a b"
    await visit.answer_json(said | {"refresh_token": following})


# ---------------------------------------------------------------- websockets


@at("/ws")
async def websocket(visit: Visit) -> None:
    """Says the credential if asked to, in frames of `piece` bytes, then echoes until the other side closes."""
    key = (visit.header("sec-websocket-key") or "").encode()
    accept = base64.b64encode(hashlib.sha1(key + _WEBSOCKET).digest()).decode()
    chosen = {"sec_websocket_protocol": visit.query["choose"]} if "choose" in visit.query else {}
    await visit.head(101, upgrade="websocket", connection="Upgrade", sec_websocket_accept=accept, **chosen)
    if "say" in visit.query:
        await _say(visit, f"<{visit.credential}>".encode(), visit.number("piece", 10**6))
    if "bad" in visit.query:
        # A reserved bit: a frame that claims to be compressed.
        await visit.send(b"\xc1\x01x")
    while True:
        opcode, payload = await _frame(visit)
        if opcode == 8:
            await visit.send(bytes((0x88, len(payload))) + payload)
            raise Goodbye
        visit.note("frame", text=payload.decode("latin-1"))
        await visit.send(bytes((0x80 | opcode,)) + _length(len(payload)) + payload)


async def _say(visit: Visit, text: bytes, piece: int) -> None:
    parts = [text[at : at + piece] for at in range(0, len(text), piece)]
    for number, part in enumerate(parts):
        first = (0 if number else 1) | (0x80 if number == len(parts) - 1 else 0)
        await visit.send(bytes((first,)) + _length(len(part)) + part)


def _length(size: int) -> bytes:
    return bytes((size,)) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 65536 else b"\x7f" + size.to_bytes(8)


async def _frame(visit: Visit) -> tuple[int, bytes]:
    first, second = await visit.reader.readexactly(2)
    size = second & 0x7F
    if size > 125:
        size = int.from_bytes(await visit.reader.readexactly(2 if size == 126 else 8))
    mask = await visit.reader.readexactly(4)
    masked = await visit.reader.readexactly(size)
    return first & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))


# ---------------------------------------------------------------- broken


@at("/stall")
async def stall(visit: Visit) -> None:
    """Says as much as `after` names, then nothing more."""
    after = visit.query.get("after")
    if after in ("head", "body"):
        await visit.head(content_type="text/plain", content_length="100")
    if after == "body":
        await visit.send(b"begun\n")
    await visit.reader.read()
    raise Goodbye


@at("/deaf")
async def deaf(visit: Visit) -> None:
    """Neither reads what comes nor answers, until the gate of the test's opens or it goes away."""
    await visit.desk.gates[visit.query["gate"]].acquire()
    raise Goodbye


@at("/reset")
async def reset(visit: Visit) -> None:
    """Breaks off."""
    if "after" in visit.query:
        await visit.head(content_type="text/plain", content_length="100")
        await visit.send(b"begun\n")
        await visit.desk.gates[visit.query["after"]].acquire()
    visit.reset()


@at("/close")
async def close(_visit: Visit) -> None:
    """Closes without a word."""
    raise Goodbye


@at("/close-later")
async def close_later(visit: Visit) -> None:
    """Closes without a word when it is not the first request of its connection."""
    if visit.turn > 1:
        raise Goodbye
    await visit.body()
    await visit.answer(b"first", content_type="text/plain")


@at("/short")
async def short(visit: Visit) -> None:
    """Less than it promises."""
    await visit.head(content_type="text/plain", content_length="100")
    await visit.send(b"ten bytes.")
    raise Goodbye


@at("/short-chunks")
async def short_chunks(visit: Visit) -> None:
    """A chunked body without its end."""
    await visit.head(content_type="text/plain", transfer_encoding="chunked")
    await visit.chunk(b"ten bytes.")
    raise Goodbye


@at("/bad-chunks")
async def bad_chunks(visit: Visit) -> None:
    """A chunk whose size is no number."""
    await visit.head(content_type="text/plain", transfer_encoding="chunked")
    await visit.send(b"zz\r\nwhat\r\n0\r\n\r\n")
    raise Goodbye


@at("/long")
async def long(visit: Visit) -> None:
    """More than it promises: what follows looks like another answer."""
    await visit.head(content_type="text/plain", content_length="4")
    await visit.send(b"goodHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
    await visit.reader.read()
    raise Goodbye


@at("/garbage")
async def garbage(visit: Visit) -> None:
    """No HTTP at all."""
    await visit.send(b"\x00\x01\x02 this is not the protocol\r\n\r\n")
    raise Goodbye


@at("/raw")
async def raw(visit: Visit) -> None:
    """Exactly the bytes that were asked for in base64, and then the end."""
    await visit.send(base64.urlsafe_b64decode(visit.query["bytes"]))
    raise Goodbye


@at("/pour")
async def pour(visit: Visit) -> None:
    """The bytes of `head`, then `times` those of `block` (for ever, if not said), then those of `tail`, in base64."""
    head, block, tail = (base64.urlsafe_b64decode(visit.query.get(name, "")) for name in ("head", "block", "tail"))
    accept = base64.b64encode(hashlib.sha1((visit.header("sec-websocket-key") or "").encode() + _WEBSOCKET).digest())
    await visit.send(head.replace(b"ACCEPT", accept))
    left, some = visit.number("times", 2**62), max(1, 65536 // len(block))
    while left > 0:
        await visit.send(block * min(left, some))
        left -= some
    await visit.send(tail)
    await visit.reader.read()
    raise Goodbye


@at("/big-head")
async def big_head(visit: Visit) -> None:
    """A head of `size` bytes."""
    await visit.answer(b"", x_big="a" * visit.number("size", 0))


@at("/many-lines")
async def many_lines(visit: Visit) -> None:
    """A head of `n` lines besides the first and the last."""
    await visit.send(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * visit.number("n", 1) + b"Content-Length: 0\r\n\r\n")


@at("/endless-head")
async def endless_head(visit: Visit) -> None:
    """A head without end."""
    await visit.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await visit.send(b"X-More: " + b"a" * 1000 + b"\r\n")


@at("/early")
async def early(visit: Visit) -> None:
    """Answers before it has heard everything."""
    await visit.answer(b"enough", 403, content_type="text/plain")
    raise Goodbye


@at("/long-job")
async def long_job(visit: Visit) -> None:
    """Says that it goes on, `interim` times over some seconds, and then that it is done."""
    for number in range(visit.number("interim", 1)):
        await visit.head(102)
        if number >= 12:
            await asyncio.sleep(0.5)
    await visit.answer(b"done")


@at("/too-large")
async def too_large(visit: Visit) -> None:
    """Refuses an upload from its head alone, and is gone while the rest is still coming."""
    await visit.answer(b"13 bytes long", 413, content_type="text/plain", connection="close")
    visit.writer.transport.abort()
    raise Goodbye


@at("/switch")
async def switch(visit: Visit) -> None:
    """Changes the protocol although nobody asked."""
    await visit.head(101, upgrade="websocket", connection="Upgrade")
    await visit.reader.read()
    raise Goodbye


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


@at("/coded")
async def content_codings(visit: Visit) -> None:
    """The credential and `zeros` zeros in the codings that were asked for, whatever the request accepts.

    `frame` says where it ends: by length, chunks or the connection; `named` says what the header calls it. It waits for
    the `gate`, if there is one, and after the answer again.
    """
    if "gate" in visit.query:
        await visit.desk.gates[visit.query["gate"]].acquire()
    names = visit.query.get("codings", "gzip").split(",")
    body = f"before <{visit.credential}> after".encode() + b"0" * visit.number("zeros", 0)
    for name in names:
        body = ENCODERS.get(name, bytes)(body)
    body = body[: visit.number("cut", len(body))]
    headers = {"content_encoding": visit.query.get("named", ", ".join(names)), "content_type": "text/plain"}
    headers |= {"etag": '"whole"', "vary": "Accept-Encoding", "x_own": "kept", "content_md5": "bWQ1"}
    status, frame = visit.number("status", 200), visit.query.get("frame", "length")
    if frame == "length" or visit.method == "HEAD":
        await visit.head(status, **headers, content_length=str(len(body)))
    elif frame == "chunks":
        await visit.head(status, **headers, transfer_encoding="chunked")
    else:
        await visit.head(status, **headers)
    if visit.method == "HEAD" or status in (204, 304):
        return
    piece = visit.number("piece", 16384)
    for at in range(0, len(body), piece):
        await (visit.chunk if frame == "chunks" else visit.send)(body[at : at + piece])
    if frame == "chunks":
        await visit.chunk(b"")
    if "gate" in visit.query:
        await visit.desk.gates[visit.query["gate"]].acquire()
    if frame == "close":
        raise Goodbye


@at("/coded-transfer")
async def coded_transfer(visit: Visit) -> None:
    """Compressed as a transfer coding."""
    await visit.head(content_type="text/plain", transfer_encoding="gzip, chunked", etag='"whole"')
    await visit.chunk(gzip.compress(f"before <{visit.credential}> after".encode()))
    await visit.chunk(b"")


# ---------------------------------------------------------------- telling


@at("/reflect")
async def reflect(visit: Visit) -> None:
    """Shows the credential in the form that was asked for: in a header, or in a body cut into pieces."""
    form = spell(visit.credential, visit.query.get("form", "raw"))
    if visit.query.get("where") == "header":
        await visit.answer(b"", x_shown=f"<{form}>")
        return
    if visit.query.get("where") == "reason":
        await visit.send(f"HTTP/1.1 401 Key {form}\r\nContent-Length: 0\r\n\r\n".encode())
        return
    text, piece = f"before <{form}> after".encode(), visit.number("piece", 10**6)
    await visit.head(content_type=visit.query.get("type", "text/plain"), transfer_encoding="chunked")
    for start in range(0, len(text), piece):
        await visit.chunk(text[start : start + piece])
        # Let each piece go out as a TLS record of its own.
        await asyncio.sleep(0)
    await visit.chunk(b"")


@at("/document")
async def document(visit: Visit) -> None:
    """A document with the credential in it, of which a part may be asked for."""
    await _whole_or_part(visit, f"Your key is {visit.credential}, keep it well.".encode())


@at("/blob")
async def blob(visit: Visit) -> None:
    """`size` bytes, of which a part may be asked for."""
    block = hashlib.sha256(b"blob").digest() * 1024
    size = visit.number("size", 0)
    await _whole_or_part(visit, (block * (size // len(block) + 1))[:size])


async def _whole_or_part(visit: Visit, text: bytes) -> None:
    """As object stores do it (RFC 9110, 14), for one range; `as` and `says` make a bad one of it."""
    common = {"content_type": visit.query.get("type", "text/plain"), "etag": '"1"', "accept_ranges": "bytes"}
    asked = visit.header("range") or visit.header("x-ms-range") or visit.header("request-range")
    if asked is None or visit.method == "HEAD" or visit.header("if-range") not in (None, '"1"'):
        await visit.head(**common, content_length=str(len(text)))
        await visit.send(b"" if visit.method == "HEAD" else text)
        return
    start, _, end = asked.removeprefix("bytes=").partition("-")
    first = int(start) if start else max(0, len(text) - int(end))
    last = min(int(end), len(text) - 1) if start and end else len(text) - 1
    if first > last:
        await visit.answer(b"", 416, content_range=f"bytes */{len(text)}")
        return
    said = visit.query.get("says", "bytes {first}-{last}/{size}").format(first=first, last=last, size=len(text))
    part, more = text[first : last + 1], {"content_encoding": visit.query["coded"]} if "coded" in visit.query else {}
    if "chunked" in visit.query:
        await visit.head(206, **common, **more, content_range=said, transfer_encoding="chunked")
        for at in range(0, len(part), 7):
            await visit.chunk(part[at : at + 7])
        await visit.chunk(b"")
        return
    await visit.answer(part, 206, **common, **more, content_range=said, content_md5="of this part")


def spell(credential: str, form: str) -> str:
    """A credential as programs write it."""
    data = credential.encode()
    forms: dict[str, Callable[[], str]] = {
        "raw": lambda: credential,
        "base64": lambda: base64.b64encode(data).decode(),
        "base64-inside": lambda: base64.b64encode(b"user:" + data + b"!").decode(),
        "base64url": lambda: base64.urlsafe_b64encode(data).decode(),
        "url": lambda: quote(credential, safe=""),
        "json": lambda: msgspec.json.encode(credential).decode()[1:-1],
        "hex": data.hex,
    }
    return forms[form]()

"""APIs that talk both ways: a server of MCP, and a websocket."""

import base64
import hashlib
from collections.abc import AsyncIterator

import msgspec

from tests.clients.apis.api import FILE, MIB, Api, be_busy, digest_of, in_header
from tests.outside.upstream_server import Goodbye, Visit

mcp = Api("mcp", in_header("authorization", "Bearer {}"))
ws = Api("ws", in_header("authorization", "Bearer {}"))
_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
WORDS = ("one ", "two ", "three ")


@mcp.on("POST", "/mcp")
async def post(visit: Visit) -> None:
    """One message of the client's, answered as JSON, or as events where there is progress to tell."""
    asked = msgspec.json.decode(await visit.body())
    session = {"mcp_session_id": "s1"}
    if "id" not in asked:
        await visit.answer(b"", 202)
        return
    said = {"jsonrpc": "2.0", "id": asked["id"]}
    given = asked.get("params") or {}
    if asked["method"] == "tools/call" and given["name"] == "count":
        await visit.head(content_type="text/event-stream", transfer_encoding="chunked", **session)
        token = given.get("_meta", {}).get("progressToken")
        for number, word in enumerate(WORDS, 1):
            progress = {"progressToken": token, "progress": number, "message": word}
            await _event(visit, {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
        await _event(visit, {**said, "result": _text("done")})
        await visit.chunk(b"")
        return
    if asked["method"] == "tools/call" and given["name"] == "busy":
        await be_busy(visit)
        return
    result = _result(asked["method"], given)
    if result is None:
        await visit.answer_json({**said, "error": {"code": -32601, "message": "Method not found"}}, **session)
        return
    await visit.answer_json({**said, "result": result}, **session)


@mcp.on("GET", "/mcp")
async def listen(visit: Visit) -> None:
    """Say that nothing comes by itself."""
    await visit.answer(b"", 405, allow="POST, DELETE")


@mcp.on("DELETE", "/mcp")
async def end(visit: Visit) -> None:
    """End the session."""
    await visit.answer(b"", 204)


def _result(method: str, given: dict[str, object]) -> dict[str, object] | None:
    if method == "initialize":
        version = "2025-06-18"
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }
    if method == "tools/list":
        at = int(str(given.get("cursor") or 1))
        following = {"nextCursor": str(at + 1)} if at < 3 else {}
        return {"tools": [{"name": str(at), "inputSchema": {"type": "object"}}], **following}
    if method == "tools/call":
        arguments = given.get("arguments") or {}
        if given["name"] == "say":
            return _text("one two three")
        size, digest = digest_of(base64.b64decode(arguments["content"]))
        return _text(f"{size} {digest}")
    if method == "resources/read":
        blob = base64.b64encode(FILE).decode()
        return {"contents": [{"uri": "file:///file", "mimeType": "application/octet-stream", "blob": blob}]}
    return None


def _text(words: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": words}]}


async def _event(visit: Visit, message: dict[str, object]) -> None:
    await visit.chunk(b"event: message\ndata: " + msgspec.json.encode(message) + b"\n\n")


ws.on("GET", "/busy")(be_busy)


@ws.on("GET", "/ws")
async def echo(visit: Visit) -> None:
    """Echo texts; `file` asks for the file, and for a binary message its size and digest are said."""
    key = (visit.header("sec-websocket-key") or "").encode()
    accept = base64.b64encode(hashlib.sha1(key + _KEY).digest()).decode()
    await visit.head(101, upgrade="websocket", connection="Upgrade", sec_websocket_accept=accept)
    async for opcode, payload in _messages(visit):
        if opcode == 8:
            await visit.send(bytes((0x88, len(payload))) + payload)
            raise Goodbye
        if payload == b"file":
            await visit.send(b"\x82\x7f" + len(FILE).to_bytes(8))
            for at in range(0, len(FILE), MIB):
                await visit.send(FILE[at : at + MIB])
            continue
        answer = payload if opcode == 1 else "{} {}".format(*digest_of(payload)).encode()
        await visit.send(bytes((0x81, len(answer))) + answer)


async def _messages(visit: Visit) -> AsyncIterator[tuple[int, bytes]]:
    whole, kind = b"", 0
    while True:
        first, second = await visit.reader.readexactly(2)
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(await visit.reader.readexactly(2 if size == 126 else 8))
        mask = await visit.reader.readexactly(4)
        masked = await visit.reader.readexactly(size)
        key = int.from_bytes((mask * (size // 4 + 1))[:size])
        whole += (int.from_bytes(masked) ^ key).to_bytes(size)
        kind = first & 0x0F or kind
        if first & 0x80:
            yield kind, whole
            whole = b""

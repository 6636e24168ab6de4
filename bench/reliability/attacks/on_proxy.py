"""Attacks on the proxy, with an agent's token, or with none."""

import asyncio
import os
from collections import Counter

from bench.reliability.attacks.target import Target, again_and_again, ask, head, hold, push, with_body

_CHUNKED = "Transfer-Encoding: chunked"


async def encodings(target: Target, seconds: float) -> Counter[str]:
    """Nobody sends 60,000 blanks in a framing header, and in a chunk's extension."""
    header = b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: a" + b" " * 60_000 + b"b\r\n\r\n"
    chunk = b"POST / HTTP/1.1\r\nHost: x\r\n" + _CHUNKED.encode() + b"\r\n\r\n5;" + b" " * 60_000 + b"\nx\r\n"
    return await again_and_again(target.proxy, [header, chunk], seconds, 4)


async def types(target: Target, seconds: float) -> Counter[str]:
    """The attacker's server answers with 40,000 blanks in its type."""
    return await again_and_again(target.proxy, [target.hostile(target.agent.token, "type")], seconds, 2)


async def idle(target: Target, seconds: float) -> Counter[str]:
    """Five tenants open 240 connections with each of four agents, ask once, and are silent."""
    openings = [
        target.hostile(agent.token, "small") for tenant in target.tenants[:5] for agent in tenant.agents[:4]
    ] * 240
    return await hold(target.proxy, openings, seconds)


async def small_chunks_up(target: Target, seconds: float) -> Counter[str]:
    """One agent uploads in chunks of one byte, twenty-four connections."""
    opening = target.hostile(target.agent.token, "upload", "POST", _CHUNKED)
    return await push(target.proxy, opening, b"1\r\nx\r\n" * 4_000, seconds, 24)


async def small_chunks_down(target: Target, seconds: float) -> Counter[str]:
    """The attacker's server answers in chunks of one byte, twelve connections of one agent."""
    return await again_and_again(target.proxy, [target.hostile(target.agent.token, "chunks")], seconds, 12)


async def early_hints(target: Target, seconds: float) -> Counter[str]:
    """The attacker's server answers 103 without end, six connections of one agent."""
    return await again_and_again(target.proxy, [target.hostile(target.agent.token, "hints")], seconds, 6)


async def small_frames(target: Target, seconds: float) -> Counter[str]:
    """Twelve websockets of one agent send frames of one byte, and pings with nothing."""
    words = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    opening = target.hostile(target.agent.token, "websocket", "GET", *words, key)
    frames = (b"\x81\x81\0\0\0\0x" + b"\x89\x80\0\0\0\0") * 3_000
    return await push(target.proxy, opening, frames, seconds, 12)


async def downloads(target: Target, seconds: float) -> Counter[str]:
    """One agent loads as fast as it can, twenty-four connections."""
    return await again_and_again(target.proxy, [target.hostile(target.agent.token, "large")], seconds, 24)


async def names(target: Target, seconds: float) -> Counter[str]:
    """Thirty agents of one tenant call hosts whose names nobody answers for."""
    requests = [
        head("GET", f"/proxy/{os.urandom(4).hex()}-{number}.slow.test/x", f"Authorization: Bearer {agent.token}")
        for agent in target.tenant.agents[:30]
        for number in range(4)
    ]
    return await again_and_again(target.proxy, requests, seconds, len(requests))


async def frozen_agent(target: Target, seconds: float) -> Counter[str]:
    """A frozen agent goes on asking, sixteen connections."""
    agent = target.tenants[2].agents[0]
    freeze = with_body(
        "POST", f"/agents/{agent.id}/freeze", b'{"reason":"x"}', f"X-Service-Key: {target.tenants[2].key}"
    )
    seen = Counter([await ask(target.api, freeze)])
    return seen + await again_and_again(target.proxy, [target.hostile(agent.token, "small")], seconds, 16)


async def no_route(target: Target, seconds: float) -> Counter[str]:
    """An agent asks for hosts that no route leads to, until it is limited and beyond, sixteen connections."""
    request = head("GET", "/proxy/nowhere.example.com/", f"Authorization: Bearer {target.tenants[3].agents[0].token}")
    return await again_and_again(target.proxy, [request], seconds, 16)


async def held_bodies(target: Target, seconds: float) -> Counter[str]:
    """Three agents of one tenant send all but the end of a body that a credential goes into, 250 times each."""
    size = 2**20 - 1024
    openings = []
    for agent in target.tenants[4].agents[:3]:
        words = ("Content-Type: application/json", f"Content-Length: {size}")
        openings += [target.hostile(agent.token, "into-body", "POST", *words) + b'{"a":"' + b"x" * (size - 64)] * 250
    return await hold(target.proxy, openings, seconds)


async def half_heads(target: Target, seconds: float) -> Counter[str]:
    """2,500 connections say half a head."""
    await asyncio.sleep(0)
    return await hold(target.proxy, [b"GET / HTTP/1.1\r\nHost: x\r\nX-Sl"] * 2_500, seconds)

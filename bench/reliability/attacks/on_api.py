"""Attacks on api and signer: each with what any tenant, agent or stranger honestly has."""

import asyncio
import os
from collections import Counter

import msgspec
from eth_utils import to_checksum_address

from bench.reliability.attacks.target import Target, again_and_again, ask, head, hold, with_body

# Far beyond what is taken, within what is read, and the largest that is legal.
_SIZES = (14_000, 2_400, 990)


def _many_addresses(count: int) -> list[dict[str, object]]:
    addresses = [to_checksum_address("0x" + os.urandom(20).hex()) for _ in range(count)]
    return [{"type": "approved-addresses", "enabled": True, "config": {"addresses": addresses}}]


async def rules(target: Target, seconds: float) -> Counter[str]:
    """Agents replace their rules with addresses by the thousand, six connections."""
    requests = [
        with_body("PUT", f"/agents/{agent.id}/policies", body, f"Authorization: Bearer {agent.token}")
        for body in (msgspec.json.encode(_many_addresses(size)) for size in _SIZES)
        for agent in target.tenant.agents[:4]
    ]
    return await again_and_again(target.api, requests, seconds, 6)


async def batches(target: Target, seconds: float) -> Counter[str]:
    """One tenant applies large rules to batches without agents, twelve connections."""
    bodies = [msgspec.json.encode({"agents": [], "applyPolicies": _many_addresses(size)}) for size in _SIZES]
    requests = [with_body("POST", "/agents/batch", body, f"X-Service-Key: {target.tenant.key}") for body in bodies]
    return await again_and_again(target.api, requests, seconds, 12)


async def store_rules(target: Target, seconds: float) -> Counter[str]:
    """One tenant stores some 14 or 45 KiB of rules for 80 agents in each call, two connections."""
    requests = []
    for number in range(60):
        agents = [{"id": f"fill-{os.getpid()}-{number}-{index}", "name": "x"} for index in range(80)]
        body = msgspec.json.encode({"agents": agents, "applyPolicies": _many_addresses(300 if number % 2 else 950)})
        requests.append(with_body("POST", "/agents/batch", body, f"X-Service-Key: {target.tenants[1].key}"))
    return await again_and_again(target.api, requests, seconds, 2)


async def backtests(target: Target, seconds: float) -> Counter[str]:
    """One tenant asks for back-tests of addresses by the thousand, eight connections."""
    path = f"/agents/{target.agent.id}/policies/backtest"
    bodies = [msgspec.json.encode({"policies": _many_addresses(size), "days": 7}) for size in _SIZES]
    requests = [with_body("POST", path, body, f"X-Service-Key: {target.tenant.key}") for body in bodies]
    return await again_and_again(target.api, requests, seconds, 8)


async def histories(target: Target, seconds: float) -> Counter[str]:
    """An agent signs 120 orders of 60,000 bytes, then asks for its history with five connections."""
    agent = target.tenants[1].agents[0]
    bearer = f"Authorization: Bearer {agent.token}"
    order = {"to": "0x" + "33" * 20, "value": "0", "data": "0x" + "ab" * 60_000, "broadcast": False}
    signing = with_body("POST", f"/vault/{agent.id}/sign", msgspec.json.encode(order), bearer)
    seen = Counter(await asyncio.gather(*(ask(target.api, signing) for _ in range(120))))
    reading = [
        head("GET", f"/vault/{agent.id}/{path}", bearer)
        for path in ("history?include=data", "transactions?limit=200&include=data")
    ]
    seen += await again_and_again(target.api, reading, seconds, 5)
    return seen


async def strangers(target: Target, seconds: float) -> Counter[str]:
    """Nobody, from three addresses, sends 1 MiB of empty objects and lists to public routes."""
    bodies = [b"[" + b",".join([piece] * count) + b"]" for piece in (b"{}", b"[]") for count in (340_000, 6_500)]
    requests = [
        with_body("POST", path, body)
        for path in ("/auth/refresh", "/auth/device/token", "/auth/device/code", "/auth/verify")
        for body in bodies
    ]
    seen = await asyncio.gather(
        *(again_and_again(target.api, requests, seconds, 3, f"127.0.0.{last}") for last in (61, 62, 63))
    )
    return sum(seen, Counter())


async def typed_data(target: Target, seconds: float) -> Counter[str]:
    """Twelve agents of one tenant have typed data of 1,900 and of 950 strings signed."""
    types = {"Note": [{"name": "lines", "type": "string[]"}], "EIP712Domain": [{"name": "name", "type": "string"}]}
    note = {"domain": {"name": "x"}, "types": types, "primaryType": "Note"}
    bodies = [
        msgspec.json.encode({**note, "value": {"lines": [f"{number:028}" for number in range(count)]}})
        for count in (1_900, 950)
    ]
    requests = [
        with_body("POST", f"/vault/{agent.id}/sign-typed-data", body, f"Authorization: Bearer {agent.token}")
        for agent in target.tenant.agents[:12]
        for body in bodies
    ]
    return await again_and_again(target.api, requests, seconds, 12)


async def streams(target: Target, seconds: float) -> Counter[str]:
    """Every tenant of the attacker's opens forty streams of events."""
    openings = [head("GET", "/events", f"X-Service-Key: {tenant.key}") for tenant in target.tenants for _ in range(40)]
    return await hold(target.api, openings, seconds)


async def searches(target: Target, seconds: float) -> Counter[str]:
    """One tenant searches its audit trail by two paths of metadata, sixteen connections."""
    path = "/audit/events?metadata.a.b=nothing&metadata.c.d=nothing&limit=100"
    return await again_and_again(target.api, [head("GET", path, f"Authorization: Bearer {target.admin}")], seconds, 16)


async def half_heads(target: Target, seconds: float) -> Counter[str]:
    """1,500 connections say half a head, and 500 half a body."""
    half = b"POST /agents HTTP/1.1\r\nHost: x\r\nX-Sl"
    body = head("POST", "/agents", "Content-Type: application/json", "Content-Length: 9000") + b'{"id":'
    return await hold(target.api, [half] * 1_500 + [body] * 500, seconds)


async def many_addresses(target: Target, seconds: float) -> Counter[str]:
    """Strangers from 6,000 addresses ask once each, and again."""
    seen: Counter[str] = Counter()
    request = head("GET", "/agents")
    until = asyncio.get_running_loop().time() + seconds
    number = 0
    while asyncio.get_running_loop().time() < until:
        sources = [f"127.{10 + n // 60_000}.{n // 250 % 250}.{1 + n % 250}" for n in range(number, number + 8)]
        seen.update(await asyncio.gather(*(ask(target.api, request, source) for source in sources)))
        number = (number + 8) % 6_000
    return seen


async def full_lists(target: Target, seconds: float) -> Counter[str]:
    """Three tenants fill lists with the largest rows they can, and read them with 21 connections."""
    data = {"to": "0x" + "33" * 20, "value": "5", "chainId": 31337, "broadcast": False, "data": "0x" + "ab" * 130_000}
    metadata = {f"k{number}": "x" * 1_000 for number in range(14)}
    filling, reading = [], []
    for tenant in target.tenants[2:5]:
        key = f"X-Service-Key: {tenant.key}"
        for number in range(60):
            intent = {"intentType": "transfer", "agentId": tenant.agents[0].id, "payload": data}
            account = {"id": f"a-{os.getpid()}-{number}", "metadata": metadata}
            account["wallets_configuration"] = [{"chain_type": "evm", "wallet_id": tenant.agents[0].id}]
            filling += [
                with_body("POST", "/intents", msgspec.json.encode(intent), key),
                with_body("POST", "/accounts", msgspec.json.encode(account), key),
            ]
        paths = ("/intents?limit=100", "/intents?limit=100&include=data", "/accounts?limit=100", "/agents?limit=100")
        reading += [head("GET", path, key) for path in paths]
    seen: Counter[str] = Counter()
    for begin in range(0, len(filling), 12):
        seen.update(await asyncio.gather(*(ask(target.api, one) for one in filling[begin : begin + 12])))
    return seen + await again_and_again(target.api, reading, seconds, 21)


async def balances(target: Target, seconds: float) -> Counter[str]:
    """Tenants that one person made ask for 25 tokens of five wallets each, and for single balances."""
    tokens = ",".join("0x" + f"{number:040x}" for number in range(1, 26))
    requests = []
    for tenant in target.person:
        key = f"X-Service-Key: {tenant.key}"
        wallets = [{"chain_type": "evm", "wallet_id": agent.id} for agent in tenant.agents]
        body = msgspec.json.encode({"id": "many-tokens", "wallets_configuration": wallets})
        await ask(target.api, with_body("POST", "/accounts", body, key))
        requests.append(head("GET", f"/accounts/many-tokens/balance?chainId=31337&tokens={tokens}", key))
        requests += [head("GET", f"/agents/{agent.id}/balance", key) for agent in tenant.agents]
    return await again_and_again(target.api, requests, seconds, 40)

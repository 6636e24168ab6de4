"""A client of Custody as somebody writes it who has the pages of docs/ and the contract, and nothing else.

It knows an address of the service and of a chain's node, and uses nothing of the product. Each part returns what it
saw, so that a test can say whether that is right. By hand:

    .venv/bin/python tests/paths/newcomer.py http://127.0.0.1:3200 http://127.0.0.1:<the chain's port> --orders 200
"""

import argparse
import asyncio
import base64
import contextlib
import datetime
import hashlib
import hmac
import http.server
import json
import secrets
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

ETH = 10**18
TRANSFER = "a9059cbb"  # transfer(address,uint256)
SHOP = "0x" + "11" * 20
STRANGER = "0x" + "22" * 20
TOKEN = "0x" + "7a" * 20
CHAIN = 31337
PAGE = 200
AT_ONCE = 8


class Refused(Exception):
    """An answer that repeating the same request would not change."""

    def __init__(self, answer: httpx.Response) -> None:
        envelope = answer.json()
        super().__init__(f"{answer.status_code} {envelope['error']}")
        self.status = answer.status_code
        self.headers = answer.headers
        self.data: dict[str, Any] = envelope.get("data") or {}
        self.code: str = self.data.get("code", "")

    def reasons(self) -> list[str]:
        """Return the rules that refused, with their reasons."""
        return [f"{rule['type']}: {rule['reason']}" for rule in self.data.get("results", []) if not rule["passed"]]


@dataclass
class Caller:
    """One credential. A change is repeated under its key until there is an answer, as docs/api.md says."""

    http: httpx.AsyncClient
    headers: dict[str, str]
    repeats: int = 0

    async def send(self, method: str, path: str, body: Any = None, key: str | None = None) -> httpx.Response:
        headers = dict(self.headers)
        if method != "GET" and not path.startswith("/auth/"):
            headers["Idempotency-Key"] = key or secrets.token_hex(16)
        pause = 0.2
        while True:
            try:
                answer = await self.http.request(method, path, json=body, headers=headers)
            except httpx.TransportError:
                if pause > 10:
                    raise
            else:
                if answer.status_code < 400:
                    return answer
                refused = Refused(answer)
                # A rule's 429 may ask for an hour: that is for the caller to decide. So is an empty wallet's 502.
                passing = answer.status_code in (500, 502, 503) or refused.code == "idempotency_in_flight"
                if refused.code == "insufficient_funds" or not (passing or refused.code == "rate_limited"):
                    raise refused
                if pause > 10:
                    raise refused
                pause = max(pause, float(answer.headers.get("Retry-After", 0)))
            self.repeats += 1
            await asyncio.sleep(pause)
            pause *= 2

    async def get(self, path: str) -> Any:
        return (await self.send("GET", path)).json()["data"]

    async def post(self, path: str, body: Any = None, key: str | None = None) -> Any:
        return (await self.send("POST", path, body, key)).json()["data"]

    async def put(self, path: str, body: Any) -> Any:
        return (await self.send("PUT", path, body)).json()["data"]

    async def delete(self, path: str) -> None:
        await self.send("DELETE", path)


@dataclass
class Order:
    """The outcome of a request for a signature: signed, or queued under `approval`."""

    tx: str
    approval: str | None
    results: list[dict[str, Any]]
    answer: dict[str, Any]

    @classmethod
    def of(cls, answer: httpx.Response) -> Self:
        data = answer.json()["data"]
        queued = answer.status_code == 202
        return cls(data["txId"], data["approvalId"] if queued else None, data.get("results", []), data)


@dataclass
class Agent:
    """The possessions of the program that spends: its name, its token, and its wallet's address."""

    name: str
    wallet: str
    caller: Caller

    async def pay(self, to: str, wei: int, key: str | None = None, **more: Any) -> Order:
        body = {"to": to, "value": str(wei), "chainId": CHAIN} | more
        return Order.of(await self.caller.send("POST", f"/vault/{self.name}/sign", body, key))

    async def sign_typed(self, document: dict[str, Any]) -> Order:
        return Order.of(await self.caller.send("POST", f"/vault/{self.name}/sign-typed-data", document))

    async def transaction(self, tx: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.caller.get(f"/vault/{self.name}/transactions/{tx}")
        return found

    async def until(self, tx: str, *states: str) -> dict[str, Any]:
        """The transaction, once it is in one of these states."""
        for _ in range(300):
            found = await self.transaction(tx)
            if found["status"] in states:
                return found
            await asyncio.sleep(0.1)
        raise TimeoutError(f"{tx} is still {found['status']}, not {' or '.join(states)}")


@dataclass
class Person:
    """Somebody with a wallet of their own and an authenticator: owner of the tenant that the first sign-in makes."""

    caller: Caller
    tenant: str
    first_key: str

    @classmethod
    async def sign_in(cls, http: httpx.AsyncClient) -> Self:
        wallet = Account.create()
        caller = Caller(http, {})
        nonce = (await caller.get("/auth/nonce"))["nonce"]
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        site = http.base_url.netloc.decode()
        message = (
            f"{site} wants you to sign in with your Ethereum account:\n{wallet.address}\n\n\n"
            f"URI: {http.base_url.scheme}://{site}\nVersion: 1\nChain ID: {CHAIN}\nNonce: {nonce}\nIssued At: {now}"
        )
        signature = wallet.sign_message(encode_defunct(text=message)).signature.to_0x_hex()
        session = await caller.post("/auth/verify", {"message": message, "signature": signature})
        caller.headers = {"Authorization": f"Bearer {session['token']}"}
        seed = (await caller.post("/auth/mfa/totp/enroll"))["secret"]
        with_factor = await caller.post("/auth/mfa/totp/verify", {"code": authenticator(seed)})
        caller.headers = {"Authorization": f"Bearer {with_factor['token']}"}
        return cls(caller, session["tenant"]["id"], session["tenant"]["apiKey"])


def authenticator(seed: str) -> str:
    """The code that an authenticator app shows for this seed now (RFC 6238)."""
    digest = hmac.digest(base64.b32decode(seed), struct.pack(">Q", int(time.time()) // 30), hashlib.sha1)
    start = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[start : start + 4])[0] & 0x7FFFFFFF) % 10**6:06}"


def erc20_transfer(to: str, units: int) -> str:
    return f"0x{TRANSFER}{to.removeprefix('0x'):0>64}{units:064x}"


def authorization(wallet: str, to: str, units: int) -> dict[str, Any]:
    """EIP-3009: who holds this signature may move so many tokens of the wallet, once, in the next hour."""
    fields = {"from": "address", "to": "address", "value": "uint256", "validAfter": "uint256", "validBefore": "uint256"}
    return {
        "domain": {"name": "Play Dollar", "version": "1", "chainId": CHAIN, "verifyingContract": TOKEN},
        "types": {
            "TransferWithAuthorization": [{"name": name, "type": kind} for name, kind in fields.items()]
            + [{"name": "nonce", "type": "bytes32"}]
        },
        "primaryType": "TransferWithAuthorization",
        "message": {
            "from": wallet,
            "to": to,
            "value": str(units),
            "validAfter": "0",
            "validBefore": str(int(time.time()) + 3600),
            "nonce": "0x" + secrets.token_hex(32),
        },
    }


def rules(day: int = ETH, threshold: int = ETH // 4) -> list[dict[str, Any]]:
    """So much ETH and so many tokens a day; a person decides above the threshold; only this contract, to the shop."""
    tokens = {"asset": f"evm:{CHAIN}:{TOKEN}", "maxPerDay": "1000"}
    limits = {"recipientAllowlist": [SHOP], "maxAmount": "100"}
    listed = {"address": TOKEN, "chainId": CHAIN, "selectors": [TRANSFER], "constraints": {TRANSFER: limits}}
    return [
        {"type": "spending-limit", "enabled": True, "config": {"maxPerDay": str(day)}},
        {"type": "spending-limit", "enabled": True, "config": tokens},
        {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": str(threshold)}},
        {"type": "contract-allowlist", "enabled": True, "config": {"contracts": [listed]}},
    ]


async def new_agent(tenant: Caller, name: str, policies: list[dict[str, Any]]) -> Agent:
    made = await tenant.post("/agents", {"id": name, "name": name})
    await tenant.put(f"/agents/{name}/policies", policies)
    token = (await tenant.post(f"/agents/{name}/token", {"expiresIn": "1h"}))["token"]
    return Agent(name, made["walletAddresses"]["evm"], Caller(tenant.http, {"Authorization": f"Bearer {token}"}))


@dataclass
class Seen:
    """Findings of the walk, by part."""

    eth: dict[str, Any] = field(default_factory=dict)
    erc20: dict[str, Any] = field(default_factory=dict)
    eip3009: dict[str, Any] = field(default_factory=dict)
    queued: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, Any] = field(default_factory=dict)
    limited: dict[str, Any] = field(default_factory=dict)
    pages: dict[str, Any] = field(default_factory=dict)
    rolled: dict[str, Any] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)


async def pay_in_eth(agent: Agent) -> dict[str, Any]:
    order = await agent.pay(SHOP, ETH // 100)
    final = await agent.until(order.tx, "confirmed", "failed")
    return {"status": final["status"], "hash": order.answer["txHash"]}


async def pay_in_erc20(agent: Agent) -> dict[str, Any]:
    """Without a token on the chain there is nothing to send: the signed bytes come back, and say what they pay."""
    order = await agent.pay(TOKEN, 0, data=erc20_transfer(SHOP, 5), broadcast=False)
    raw = order.answer["signedTransaction"]
    signed = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
    return {
        "signer": Account.recover_transaction(raw),
        "to": "0x" + bytes(signed["to"]).hex(),
        "data": "0x" + bytes(signed["data"]).hex(),
    }


async def pay_by_eip3009(agent: Agent) -> dict[str, Any]:
    document = authorization(agent.wallet, SHOP, 7)
    order = await agent.sign_typed(document)
    message = document["message"] | {name: int(document["message"][name]) for name in ("value", "validBefore")}
    message["validAfter"] = 0
    signable = encode_typed_data(document["domain"], document["types"], message)
    return {"signer": Account.recover_message(signable, signature=order.answer["signature"])}


async def ask_a_person(agent: Agent, tenant: Caller, person: Person) -> dict[str, Any]:
    """Three payments above the threshold: the tenant's key approves one, a person one, and one is denied."""
    outcome = {}
    for decider, name, act in (
        (tenant, "tenant", "approve"),
        (person.caller, "person", "approve"),
        (tenant, "no", "deny"),
    ):
        order = await agent.pay(SHOP, ETH * 3 // 10 if act == "deny" else ETH * 26 // 100)
        item = await decider.get(f"/approvals/{order.approval}")
        body = {"digest": item["digest"]} | ({"reason": "Not this month."} if act == "deny" else {})
        await decider.post(f"/approvals/{order.approval}/{act}", body)
        final = await agent.until(order.tx, "confirmed", "failed", "rejected")
        outcome[name] = {"why": [r["reason"] for r in order.results if not r["passed"]]}
        outcome[name] |= {"status": final["status"], "reason": final["reason"]}
    return outcome


async def be_refused(agent: Agent) -> dict[str, Any]:
    """Ask for what the rules forbid, and read their reasons."""
    asked = {
        "too much": agent.pay(SHOP, 2 * ETH),
        "too many tokens": agent.pay(TOKEN, 0, data=erc20_transfer(SHOP, 200), broadcast=False),
        "to a stranger": agent.pay(TOKEN, 0, data=erc20_transfer(STRANGER, 5), broadcast=False),
        "by typed data": agent.sign_typed(authorization(agent.wallet, STRANGER, 5)),
    }
    said = {}
    for name, request in asked.items():
        try:
            await request
        except Refused as refused:
            said[name] = {"status": refused.status, "code": refused.code, "reasons": refused.reasons()}
    return said


async def be_limited(tenant: Caller) -> dict[str, Any]:
    """The rate is too high: the answer says when to come back. The tenant has more room made sooner than that."""
    hourly = {"type": "rate-limit", "enabled": True, "config": {"maxTxPerHour": 1}}
    agent = await new_agent(tenant, "hasty", [hourly])
    await agent.pay(SHOP, 1, broadcast=False)
    key = secrets.token_hex(16)
    try:
        await agent.pay(SHOP, 2, key=key, broadcast=False)
    except Refused as refused:
        said = {"status": refused.status, "code": refused.code, "reasons": refused.reasons()}
        said["after"] = int(refused.headers["Retry-After"])
    hourly["config"] = {"maxTxPerHour": 2}
    await tenant.put("/agents/hasty/policies", [hourly])
    again = await agent.pay(SHOP, 2, key=key, broadcast=False)
    return said | {"again": (await agent.transaction(again.tx))["status"]}


async def sign_many(agent: Agent, count: int, signed: list[str]) -> None:
    """So many signatures that nobody broadcasts, a few at a time; each id is noted once it is known."""
    left = iter(range(count))

    async def one_after_another() -> None:
        for _ in left:
            signed.append((await agent.pay(SHOP, 1, broadcast=False)).tx)

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


async def walk(caller: Caller, path: str) -> AsyncIterator[list[dict[str, Any]]]:
    """Each page of a list, from the newest row to the oldest."""
    page = await caller.get(path)
    while True:
        yield page["transactions"]
        if page["nextCursor"] is None:
            return
        page = await caller.get(f"{path}&cursor={page['nextCursor']}")


async def read_all(tenant: Caller, count: int) -> dict[str, Any]:
    """Reads what was signed, page by page, while as many as fit are signed beside it."""
    agent = await new_agent(tenant, "busy", rules(10 * ETH))
    before: list[str] = []
    meanwhile: list[str] = []
    read: list[str] = []
    pages = 0
    stop = asyncio.Event()

    async def keep_signing() -> None:
        while not stop.is_set():
            await sign_many(agent, AT_ONCE, meanwhile)

    await sign_many(agent, count, before)
    async with asyncio.TaskGroup() as beside:
        beside.create_task(keep_signing())
        # Small pages, so that a walk over few takes a while too.
        async for page in walk(tenant, f"/transactions?agentId=busy&limit={max(1, min(PAGE, count // 10))}"):
            read += [row["txId"] for row in page]
            pages += 1
        stop.set()
    return {
        "read": len(read),
        "pages": pages,
        "signed meanwhile": len(meanwhile),
        "twice": len(read) - len(set(read)),
        "missing": len(set(before) - set(read)),
        "unknown": len(set(read) - set(before) - set(meanwhile)),
    }


async def roll_the_key(tenant: Caller, person: Person) -> dict[str, Any]:
    """A new key while the former is in use: both work until every program has changed over; then the former ends."""
    stop = asyncio.Event()
    done = {"old": 0, "new": 0}

    async def work() -> None:
        while not stop.is_set():
            now = "new" if tenant.headers != old else "old"
            await tenant.get("/agents")
            await tenant.post("/agents/busy/token", {"expiresIn": "1h"})
            done[now] += 1

    async def until_so_many_more(which: str) -> None:
        wanted = done[which] + 3 * AT_ONCE
        while done[which] < wanted:
            await asyncio.sleep(0.01)

    repeats = tenant.repeats
    old = tenant.headers
    keys = f"/tenants/{person.tenant}/api-keys"
    former = (await tenant.get("/me"))["keyId"]
    async with asyncio.TaskGroup() as workers:  # a request that fails ends all of it
        for _ in range(AT_ONCE):
            workers.create_task(work())
        await until_so_many_more("old")
        new = await person.caller.post(keys, {"overlapSeconds": 600, "name": "next"})
        await until_so_many_more("old")
        tenant.headers = {"X-Service-Key": new["apiKey"]}
        await until_so_many_more("new")  # by now everybody has the new key, and every answer to the old one
        await person.caller.delete(f"{keys}/{former}")
        await until_so_many_more("new")
        stop.set()
    refused = await once_refused(Caller(tenant.http, old))
    return {"rounds": done, "repeats": tenant.repeats - repeats, "old key": refused.status}


async def once_refused(caller: Caller) -> Refused:
    """A read may still pass for a second after its key has ended."""
    for _ in range(100):
        try:
            await caller.get("/agents")
        except Refused as refused:
            return refused
        await asyncio.sleep(0.1)
    raise TimeoutError("a key that has ended still reads")


@contextlib.contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """An endpoint on this machine that notes what it is sent, and takes it."""
    received: list[tuple[dict[str, str], bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/custody", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def hear(agent: Agent, person: Person) -> dict[str, Any]:
    """The event of one signature, sent to this program; and the same with one word changed."""
    with receiver() as (url, received):
        endpoint = await person.caller.post("/webhooks", {"url": url, "events": ["tx.signed"]})
        order = await agent.pay(SHOP, 1, broadcast=False)
        ours = await wait_for_event(received, order.tx)
        await person.caller.delete(f"/webhooks/{endpoint['id']}")
    headers, body = ours
    checker = Webhook(endpoint["secret"])
    event = checker.verify(body, headers)
    try:
        checker.verify(body.replace(b"tx.signed", b"tx.denied"), headers)
        forged = "taken"
    except WebhookVerificationError:
        forged = "refused"
    return {"event": event["event"], "ours": event["data"]["txId"] == order.tx, "forged": forged}


async def wait_for_event(received: list[tuple[dict[str, str], bytes]], tx: str) -> tuple[dict[str, str], bytes]:
    """Wait for the event about this transaction. A new endpoint also hears of what happened just before it was made."""
    for _ in range(300):
        for headers, body in received:
            if tx.encode() in body:
                return headers, body
        await asyncio.sleep(0.1)
    raise TimeoutError(f"nothing came about {tx}")


def play_money(node: str) -> Callable[[str, int], None]:
    """Return the function that gives a wallet play money on the chain of `custody up` (docs/api.md)."""

    def fund(wallet: str, wei: int) -> None:
        call = {"jsonrpc": "2.0", "id": 1, "method": "dev_fund", "params": [wallet, hex(wei)]}
        answer = httpx.post(node, json=call).json()
        if "error" in answer:
            raise SystemExit(f"{node}: {answer['error']}")

    return fund


async def everything(service: str, fund: Callable[[str, int], None], orders: int) -> Seen:
    seen = Seen()
    async with httpx.AsyncClient(base_url=service, timeout=30) as client:
        person = await Person.sign_in(client)
        tenant = Caller(client, {"X-Service-Key": person.first_key})
        agent = await new_agent(tenant, "buyer", rules())
        fund(agent.wallet, 5 * ETH)
        seen.eth = await pay_in_eth(agent)
        seen.erc20 = await pay_in_erc20(agent) | {"wallet": agent.wallet}
        seen.eip3009 = await pay_by_eip3009(agent) | {"wallet": agent.wallet}
        seen.refused = await be_refused(agent)
        seen.queued = await ask_a_person(agent, tenant, person)
        seen.limited = await be_limited(tenant)
        seen.events = await hear(agent, person)
        seen.pages = await read_all(tenant, orders)
        seen.rolled = await roll_the_key(tenant, person)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("service")
    parser.add_argument("node")
    parser.add_argument("--orders", type=int, default=200)
    chosen = parser.parse_args()
    began = time.monotonic()
    seen = asyncio.run(everything(chosen.service, play_money(chosen.node), chosen.orders))
    print(json.dumps(vars(seen), indent=2))
    print(f"{time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()

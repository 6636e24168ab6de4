"""A call is bought by httpx with the client's own payer, and by x402's own client with the vault's account."""

import asyncio
import json
import sys

import httpx
from custody_sdk import AsyncVault, Vault
from custody_sdk.x402 import PayingAuth, client_signer
from x402 import x402Client
from x402.http.clients.httpx import x402AsyncTransport
from x402.mechanisms.evm.exact import register_exact_evm_client

url = sys.argv[1]
said = {}

with Vault.from_environment() as vault, httpx.Client(timeout=60) as http:
    said["unpaid"] = http.get(url).status_code
    first = http.get(url, auth=PayingAuth(vault, "quote-1"))
    said["paid"] = [first.status_code, first.json()]
    # The same name is the same payment, which this seller has taken already.
    said["again"] = http.get(url, auth=PayingAuth(vault, "quote-1")).status_code
    signer = client_signer(vault)

    async def by_their_client() -> list:
        client = x402Client()
        register_exact_evm_client(client, signer)
        if hasattr(client, "set_spend_controls"):
            # It pays in tokens that it knows, and the play token is none of them.
            client.set_spend_controls({"allowed_assets": True})
        async with httpx.AsyncClient(transport=x402AsyncTransport(client), timeout=60) as theirs:
            answer = await theirs.get(url)
            return [answer.status_code, answer.json()]

    async def on_a_loop() -> int:
        async with AsyncVault.from_environment() as waited, httpx.AsyncClient(timeout=60) as http:
            return (await http.get(url, auth=PayingAuth(waited, "quote-2"))).status_code

    said["theirs"] = asyncio.run(by_their_client())
    said["on_a_loop"] = asyncio.run(on_a_loop())
print(json.dumps(said))

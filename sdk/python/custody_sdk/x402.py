"""Paying what servers demand by x402: by httpx, or by x402's own client.

    http.get(url, auth=PayingAuth(vault, "quote-4711"))     # asks, pays within the rules, asks again once

The vault builds the payment itself from the demand, so neither a server nor this program chooses nonce and validity.
"""

from collections.abc import AsyncGenerator, Generator
from typing import Any, Final

import httpx

from custody_sdk.client import AsyncVault, Vault
from custody_sdk.errors import BadArgument

MAX_DEMAND_CHARACTERS: Final = 21_848


class PayingAuth(httpx.Auth):
    """Pays a 402 of version 2 once, under a name for this purchase, and sends the request again with the payment.

    A second 402 is handed back as it came: nothing is paid twice. What waits for a person raises Waiting; with the same
    name it goes on from there. A demand of version 1 is in the body: hand it to `Vault.pay_demand`.
    """

    requires_request_body = True

    def __init__(self, vault: Vault | AsyncVault, name: str, *, wait: float = 0) -> None:
        self._vault, self._name, self._wait = vault, name, wait

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        """Ask, pay, and ask again."""
        if not isinstance(self._vault, Vault):
            raise BadArgument(0, "bad_vault", "httpx.Client wants a Vault, httpx.AsyncClient an AsyncVault.")
        request.read()
        response = yield request
        if demand := _demand(request, response):
            paid = self._vault.pay_demand(self._name, demand, resource=_resource(request), wait=self._wait)
            request.headers.update(paid.headers)
            yield request

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Ask, pay, and ask again."""
        if not isinstance(self._vault, AsyncVault):
            raise BadArgument(0, "bad_vault", "httpx.Client wants a Vault, httpx.AsyncClient an AsyncVault.")
        await request.aread()
        response = yield request
        if demand := _demand(request, response):
            paid = await self._vault.pay_demand(self._name, demand, resource=_resource(request), wait=self._wait)
            request.headers.update(paid.headers)
            yield request


def client_signer(vault: Vault, *, wait: float = 0) -> Any:
    """Return what x402's own client takes: `register_exact_evm_client(client, client_signer(vault))`.

    Its asynchronous client calls this on the event loop, so do not wait for a person in it.
    """
    from x402.mechanisms.evm.signers import EthAccountSigner  # noqa: PLC0415  x402 is needed here alone

    from custody_sdk.eth import VaultAccount  # noqa: PLC0415  and eth-account too

    return EthAccountSigner(VaultAccount(vault, wait=wait))


def _demand(request: httpx.Request, response: httpx.Response) -> str | None:
    """Return what is demanded for this request; of another host than was asked nothing is paid."""
    found = response.headers.get_list("PAYMENT-REQUIRED")
    asked = (request.url.scheme, request.url.host, request.url.port)
    answered = (response.url.scheme, response.url.host, response.url.port)
    if response.status_code != 402 or asked != answered or len(found) != 1 or len(found[0]) > MAX_DEMAND_CHARACTERS:
        return None
    return found[0] if {"payment-signature", "x-payment"}.isdisjoint(request.headers) else None


def _resource(request: httpx.Request) -> str | None:
    """Return the address for people who decide, without what may be a secret in it."""
    address = str(request.url.copy_with(username=None, password=None, query=None, fragment=None))
    return address if len(address) <= 2048 and address.isascii() else None

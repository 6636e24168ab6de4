"""Sellers that others wrote: x402's own packages; their facilitators settle on the nodes of the tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.outside import foreign_python, loopback, npm
from tests.outside.processes import running

HERE = Path(__file__).parent
PAY_TO = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"


class Seller:
    """An API that wants 60 of a token for the weather."""

    def __init__(self, url: str, http: httpx.Client) -> None:
        self.url = f"{url}/weather"
        self._url, self._http = url, http

    def ask(self, **headers: str) -> httpx.Response:
        """Ask for the weather, with a payment or without."""
        return self._http.get(self.url, headers=headers)

    def recover(self, payload: dict[str, Any], *, upto: bool) -> dict[str, Any]:
        """Tell whose signature a payment by Permit2 bears, and whether the proxy in it is theirs."""
        found: dict[str, Any] = self._http.post(f"{self._url}/signer", json={"payload": payload, "upto": upto}).json()
        return found

    def read(self, value: str) -> dict[str, Any]:
        """Have the seller's package read a payment, and say whether it is good."""
        found: dict[str, Any] = self._http.post(f"{self._url}/read", json={"value": value}).json()
        return found


@contextmanager
def running_seller(node_url: str, token: str, key: bytes) -> Iterator[Seller]:
    """Start one of Node, which settles on this node with this key; `token` is here, as the play USDC is."""
    npm.install(HERE)
    with _selling([_node(), HERE / "seller.mjs", node_url, token, "0x" + key.hex()]) as seller:
        yield seller


@contextmanager
def running_python_seller(node_url: str, token: str, key: bytes) -> Iterator[Seller]:
    """Start one of Python, which does the same."""
    python = foreign_python.install(HERE, "x402")
    with _selling([python, HERE / "python_seller.py", node_url, token, "0x" + key.hex(), PAY_TO]) as seller:
        yield seller


@contextmanager
def running_solana_seller(node_url: str, mint: str, key: bytes, pay_to: str, *, fresh: bool) -> Iterator[Seller]:
    """Start one that sells on Solana, and sponsors what it is paid; `fresh`: with a blockhash in its offer."""
    npm.install(HERE)
    how = "fresh" if fresh else "bare"
    with _selling([_node(), HERE / "solana_seller.mjs", node_url, mint, key.hex(), pay_to, how]) as seller:
        yield seller


@contextmanager
def _selling(command: list[str | Path]) -> Iterator[Seller]:
    # The first answer of theirs waits for what they load.
    with running(command) as address, loopback.client(timeout=60) as http:
        yield Seller(f"http://{address}", http)


def _node() -> str:
    return shutil.which("node") or "node"
